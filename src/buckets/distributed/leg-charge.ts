/** What came of a leg. */

import type { Link, ShardPart } from "../bucket-store.ts";

export type LegCharge =
  | {
      readonly kind: "charged";
      readonly parts: readonly ShardPart[];
      readonly link: Link;
      readonly balancesMilli: readonly number[];
    }
  | { readonly kind: "refused"; readonly balancesMilli: readonly number[] }
  | { readonly kind: "outdated" };
