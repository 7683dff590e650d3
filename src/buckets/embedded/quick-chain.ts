/** A bucket and those of the ancestors it cascades to, charged on the spot: all of them or none. */

import { ANCESTORS_MAX } from "../../records/ancestry.ts";
import type { ChargedNow, Leg, LegOutcome } from "../bucket-store.ts";
import type { PackedBucket } from "./packed-bucket.ts";
import type { QuickCharge } from "./quick-charge.ts";

/** A bucket of the chain, and what it is charged with. */
interface ChainedBucket {
  readonly entityId: string;
  readonly bucket: PackedBucket;
  readonly amounts: readonly number[];
}

/** Where the chain begins, and what is consumed. */
export interface ChainRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: PackedBucket;
  readonly consume: Readonly<Record<string, number>>;
  readonly ignoresMissing: boolean;
  readonly nowMs: number;
  /** The bucket of an ancestor, where its limits are remembered. */
  readonly above: (entityId: string) => PackedBucket | undefined;
}

/** Charges all buckets of the chain or none; `undefined`, with nothing done: use the slow path. */
export function chargeChain(request: ChainRequest): ChargedNow | undefined {
  const { resource, nowMs } = request;
  const chain = chainOf(request);
  if (chain === undefined) return undefined;
  let granted = true;
  for (const { bucket, amounts } of chain) {
    const fits = bucket.fits(amounts, nowMs);
    if (fits === undefined) return undefined;
    if (!fits) granted = false;
  }
  const charges = chain.map(({ entityId, bucket, amounts }) =>
    bucket.leg(entityId, resource, amounts, granted, nowMs),
  );
  return new QuickChain(granted, request.entityId, resource, charges);
}

function chainOf(request: ChainRequest): ChainedBucket[] | undefined {
  const { entityId, bucket, consume, ignoresMissing, above } = request;
  const own = bucket.ownAmounts(consume, ignoresMissing);
  if (own === undefined) return undefined;
  const chain: ChainedBucket[] = [{ entityId, bucket, amounts: own }];
  let last = bucket;
  while (last.cascades) {
    const { parentId } = last.link;
    const next = parentId === undefined ? undefined : above(parentId);
    const amounts = next?.amountsBelow(consume);
    // The slow path tells of a circle; an ancestor without a bucket may have no limits.
    if (chain.length > ANCESTORS_MAX || next === undefined || amounts === undefined) {
      return undefined;
    }
    chain.push({ entityId: parentId as string, bucket: next, amounts });
    last = next;
  }
  return chain;
}

/** What came of it, leg by leg. */
class QuickChain implements ChargedNow {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly #charges: readonly QuickCharge[];

  constructor(
    granted: boolean,
    entityId: string,
    resource: string,
    charges: readonly QuickCharge[],
  ) {
    this.granted = granted;
    this.entityId = entityId;
    this.resource = resource;
    this.#charges = charges;
  }

  get legs(): readonly Leg[] {
    return this.#charges.flatMap(({ legs }) => legs);
  }

  get outcomes(): readonly LegOutcome[] {
    return this.#charges.flatMap(({ outcomes }) => outcomes);
  }

  get balancesMilli(): readonly (readonly number[])[] {
    return this.#charges.flatMap(({ balancesMilli }) => balancesMilli);
  }
}
