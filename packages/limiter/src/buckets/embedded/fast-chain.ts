/** The fast path of a bucket and of the ancestors it cascades to: consumes from all or none. */

import { ANCESTORS_MAX } from "../../records/entities/ancestry.ts";
import type { FastOutcome, FastRequest } from "../fast-path.ts";
import type { Leg, LegOutcome } from "../leg.ts";
import type { FastConsume } from "./fast-consume.ts";
import type { PackedBucket } from "./packed-bucket.ts";

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
  const { request, ignoresMissing, nowMs } = start;
  const { resource, consume } = request;
  const buckets: PackedBucket[] = [];
  const outcomes: FastConsume[] = [];
  let { entityId } = request;
  let bucket: PackedBucket | undefined = start.bucket;
  while (bucket !== undefined) {
    // Names that an ancestor has no limit for are those of the entity below.
    const passesOver = ignoresMissing || buckets.length > 0;
    const outcome = bucket.look(entityId, resource, consume, passesOver, nowMs);
    // The slow path tells of a circle; an ancestor without a bucket may have no limits.
    if (outcome === undefined || buckets.length > ANCESTORS_MAX) return undefined;
    buckets.push(bucket);
    outcomes.push(outcome);
    if (!bucket.cascades) break;
    entityId = bucket.link.parentId as string;
    bucket = above(entityId);
  }
  if (bucket === undefined) return undefined;
  const granted = outcomes.every((outcome) => outcome.granted);
  if (granted)
    for (const [at, each] of buckets.entries()) each.take(outcomes[at] as FastConsume, nowMs);
  return new FastChain(granted, request.entityId, resource, outcomes);
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
