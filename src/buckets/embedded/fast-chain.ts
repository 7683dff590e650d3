/** The fast path of a bucket and of the ancestors it cascades to: consumes from all or none. */

import { ANCESTORS_MAX } from "../../records/ancestry.ts";
import type { FastOutcome, FastRequest } from "../fast-path.ts";
import type { Leg, LegOutcome } from "../leg.ts";
import type { FastConsume } from "./fast-consume.ts";
import type { PackedBucket } from "./packed-bucket.ts";

/** A bucket of the chain, and what is consumed from it. */
interface ChainedBucket {
  readonly entityId: string;
  readonly bucket: PackedBucket;
  readonly amounts: readonly number[];
}

/** Where the chain begins, and what is consumed. */
export interface ChainRequest {
  readonly request: FastRequest;
  readonly bucket: PackedBucket;
  readonly ignoresMissing: boolean;
  readonly nowMs: number;
}

/** Finds the bucket of an ancestor, where its limits are cached. */
export type Ancestors = (entityId: string) => PackedBucket | undefined;

/** Consumes from the whole chain or not at all; `undefined`, with nothing done: the slow path. */
export function consumeChain(start: ChainRequest, above: Ancestors): FastOutcome | undefined {
  const { request, nowMs } = start;
  const { resource } = request;
  const chain = chainOf(start, above);
  if (chain === undefined) return undefined;
  let granted = true;
  for (const { bucket, amounts } of chain) {
    const fits = bucket.fits(amounts, nowMs);
    if (fits === undefined) return undefined;
    if (!fits) granted = false;
  }
  const outcomes = chain.map(({ entityId, bucket, amounts }) =>
    bucket.leg(entityId, resource, amounts, granted, nowMs),
  );
  return new FastChain(granted, request.entityId, resource, outcomes);
}

function chainOf(start: ChainRequest, above: Ancestors): ChainedBucket[] | undefined {
  const { bucket, ignoresMissing } = start;
  const { entityId, consume } = start.request;
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
class FastChain implements FastOutcome {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly #outcomes: readonly FastConsume[];

  constructor(
    granted: boolean,
    entityId: string,
    resource: string,
    outcomes: readonly FastConsume[],
  ) {
    this.granted = granted;
    this.entityId = entityId;
    this.resource = resource;
    this.#outcomes = outcomes;
  }

  get legs(): readonly Leg[] {
    return this.#outcomes.flatMap(({ legs }) => legs);
  }

  get outcomes(): readonly LegOutcome[] {
    return this.#outcomes.flatMap(({ outcomes }) => outcomes);
  }

  get balancesMilli(): readonly (readonly number[])[] {
    return this.#outcomes.flatMap(({ balancesMilli }) => balancesMilli);
  }
}
