/** The queues that a call may wait in: one for each of its parts, and one for each total. */

import type { LimitStatus } from "../../domain/limit-status.ts";
import { TOTAL } from "../../domain/names.ts";
import { type BucketName, bucketId } from "../../records/keys.ts";
import type { AmountsByName, CheckedRequest } from "../acquire-request.ts";
import { lineOf, type Refusal } from "../decision.ts";
import { addAmounts } from "./waiter-lanes.ts";

/** A call, as far as queues need it. */
export type QueuedCall = Pick<
  CheckedRequest,
  "entityId" | "resource" | "limits" | "amounts" | "totals"
> & { readonly also?: CheckedRequest["also"]; readonly signal?: AbortSignal | undefined };

/** A call in the queue of one entity and resource. */
export interface QueueLine extends BucketName {
  /** Tokens that the call needs of this line. */
  readonly amounts: AmountsByName;
  readonly limits: CheckedRequest["limits"];
  readonly call: QueuedCall;
}

/** Returns the lines of a call, its own first. */
export function linesOf(call: QueuedCall): readonly QueueLine[] {
  const { entityId, resource, amounts, limits, also = [], totals } = call;
  const own = { entityId, resource, amounts, limits, call };
  if (also.length === 0 && !totals) return [own];
  const lines = new Map<string, QueueLine>([[bucketId(own), own]]);
  for (const part of also) lines.set(bucketId(part), { ...part, limits: part.limits, call });
  if (!totals) return [...lines.values()];
  const named = new Set(
    also.filter((part) => part.resource === TOTAL).map(({ entityId: id }) => id),
  );
  const parts = also.filter((part) => part.limits === undefined);
  for (const part of [own, ...parts]) {
    if (named.has(part.entityId)) continue;
    const total = { entityId: part.entityId, resource: TOTAL };
    const sums = new Map(lines.get(bucketId(total))?.amounts);
    addAmounts(sums, part.amounts, 1);
    lines.set(bucketId(total), { ...total, amounts: sums, limits: undefined, call });
  }
  return [...lines.values()];
}

/** Returns the line that a refused call must wait for longest; `undefined`: none is exceeded. */
export function scarcestOf(refusal: Refusal, call: QueuedCall): QueueLine | undefined {
  let longest: LimitStatus | undefined;
  for (const status of refusal.violations) {
    if (longest !== undefined && status.retryAfterSeconds <= longest.retryAfterSeconds) continue;
    longest = status;
  }
  if (longest === undefined) return undefined;
  const name = bucketId(lineOf(refusal, longest, entitiesOf(call)));
  return linesOf(call).find((line) => bucketId(line) === name);
}

/** Returns the entities of the parts of a call, its own first. */
function entitiesOf({ entityId, also = [] }: QueuedCall): readonly string[] {
  return also.length === 0 ? [entityId] : [entityId, ...also.map((part) => part.entityId)];
}

/**
 * Returns the statuses of a line: of its entity, and of the ancestors that the entity cascades to.
 * `partsOf`: the parts of the call that consume from a bucket.
 */
export function statusesOn(
  { entityId, resource, call }: QueueLine,
  statuses: readonly LimitStatus[],
  partsOf: (bucket: BucketName) => readonly number[],
): readonly LimitStatus[] {
  if ((call.also ?? []).length === 0 && !call.totals) return statuses;
  const entities = entitiesOf(call);
  return statuses.filter(
    (status) =>
      status.resource === resource && partsOf(status).some((part) => entities[part] === entityId),
  );
}
