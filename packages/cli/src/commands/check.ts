/** `stack check`: whether this client can use a store, for scripts. */

import { EXIT } from "../frame/exit-codes.ts";
import { verdictOf, verdictText, versionLeaf } from "./stack/version-report.ts";

const FINE: readonly string[] = ["compatible", "update_available"];

export const check = versionLeaf(
  {
    name: "check",
    summary: "checks whether this client can use a store",
    details: "Ends with 1 when it cannot, or when the store has no version record.",
  },
  (report) => ({
    text: verdictText(report),
    code: FINE.includes(verdictOf(report)) ? EXIT.ok : EXIT.failed,
  }),
);
