/** What an acquire asks for, checked before anything else happens. */

import { checkFields, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import { checkLimits, isCheckedList, type Limit, type LimitInput } from "../domain/limit.ts";
import { checkEntityId, checkResource } from "../domain/names.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/unavailability.ts";
import { type Amounts, type AmountsByName, checkAmounts } from "./amounts.ts";
import { checkMissingLimits, type MissingLimits } from "./missing-limits.ts";
import { checkOnError, type OnError } from "./on-error.ts";

/**
 * What an acquire asks for.
 *
 * @example
 * ```ts
 * import type { AcquireRequest } from 'zae-limiter';
 * const request: AcquireRequest = {
 *   entityId: 'key-1',
 *   resource: 'openai/gpt-4',
 *   consume: { rpm: 1, tpm: 500 },
 *   maxWaitSeconds: 5,
 * };
 * ```
 */
export interface AcquireRequest<Names extends string = string> {
  /** The entity that consumes, such as an API key or a user. It need not be created before. */
  readonly entityId: string;
  /** What is consumed, such as a model or an endpoint. */
  readonly resource: string;
  /** Whole tokens >= 0 per limit name; only names of limits that the entity has. */
  readonly consume: Amounts<Names>;
  /** Up to 15 more resources: all are granted, or none is consumed. Not with `limits`. */
  readonly also?: readonly AlsoRequest<Names>[] | undefined;
  /** Instead of the stored limits, for this call. */
  readonly limits?: readonly LimitInput[] | undefined;
  /** What this call does while the store cannot answer; overrides the limiter and the store. */
  readonly onUnavailable?: OnUnavailable | undefined;
  /** 0 (default): refuse at once; above: wait in the queue, up to that long. */
  readonly maxWaitSeconds?: number | undefined;
  /** Ends the wait for tokens, and nothing after the grant: granted work ends by itself. */
  readonly signal?: AbortSignal | undefined;
  /** For `run`: how the lease ends when the work throws. Default `rollback`. */
  readonly onError?: OnError | undefined;
  /** What a name in `consume` does that the entity has no limit for. Default `error`. */
  readonly missingLimits?: MissingLimits | undefined;
}

/** What an acquire consumes of another resource. */
export interface AlsoRequest<Names extends string = string> {
  /** The other resource. */
  readonly resource: string;
  /** Whole tokens >= 0 per limit name. */
  readonly consume: Amounts<Names>;
}

const ALSO_MAX = 15;
const TARGET_FIELDS = ["entityId", "resource", "limits"] as const;
const REQUEST_FIELDS = [
  ...TARGET_FIELDS,
  "consume",
  "also",
  "onUnavailable",
  "maxWaitSeconds",
  "signal",
  "onError",
  "missingLimits",
] as const satisfies readonly (keyof AcquireRequest)[];

/** What is consumed of another resource, checked. */
export interface CheckedAlso {
  readonly resource: string;
  readonly amounts: AmountsByName;
}

const NO_OTHERS: readonly CheckedAlso[] = Object.freeze([]);

/** A request whose parts have been checked. */
export interface CheckedRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** Other resources of the same call; none for most. */
  readonly also: readonly CheckedAlso[];
  readonly limits: readonly Limit[] | undefined;
  readonly onUnavailable: OnUnavailable | undefined;
  readonly maxWaitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly missingLimits: MissingLimits | undefined;
}

/**
 * Whether a request can be decided on the spot: it does not wait, and what it says beyond entity,
 * resource and amounts is known to be right without a look at each part.
 */
export function isPlain(request: AcquireRequest): boolean {
  if (typeof request !== "object" || request === null) return false;
  // Read before the prototype: once its shape is known, the prototype costs nothing to check.
  if (typeof request.entityId !== "string") return false;
  if (Object.getPrototypeOf(request) !== Object.prototype) return false;
  for (const name in request) {
    if (name === "entityId" || name === "resource" || name === "consume") continue;
    if (!isPlainOption(name as keyof AcquireRequest, request)) return false;
  }
  return true;
}

function isPlainOption(name: keyof AcquireRequest, request: AcquireRequest): boolean {
  const value = request[name];
  if (value === undefined) return REQUEST_FIELDS.includes(name);
  if (name === "limits") return isCheckedList(request.limits ?? []);
  if (name === "onUnavailable") return value === "allow" || value === "block";
  if (name === "missingLimits") return value === "ignore" || value === "error";
  if (name === "maxWaitSeconds") return value === 0;
  return false;
}

export function checkAcquireRequest(request: AcquireRequest): CheckedRequest {
  if (typeof request !== "object" || request === null) {
    throw new ValidationError("request", request, `expected an object, got ${show(request)}`);
  }
  const { maxWaitSeconds = 0, onUnavailable, missingLimits } = request;
  if (typeof maxWaitSeconds !== "number" || !(maxWaitSeconds >= 0)) {
    throw new ValidationError(
      "maxWaitSeconds",
      maxWaitSeconds,
      `expected a number >= 0, got ${show(maxWaitSeconds)}`,
    );
  }
  const { entityId, resource, limits } = checkTarget(request, REQUEST_FIELDS);
  if (request.onError !== undefined) checkOnError(request.onError);
  return {
    entityId,
    resource,
    limits,
    amounts: checkAmounts("consume", request.consume, 0),
    also: checkAlso(request),
    onUnavailable: onUnavailable === undefined ? undefined : checkOnUnavailable(onUnavailable),
    maxWaitMs: maxWaitSeconds * 1000,
    signal: checkSignal(request.signal),
    missingLimits: missingLimits === undefined ? undefined : checkMissingLimits(missingLimits),
  };
}

function checkAlso({ also, resource, limits }: AcquireRequest): readonly CheckedAlso[] {
  if (also === undefined) return NO_OTHERS;
  if (!Array.isArray(also) || also.length > ALSO_MAX) {
    const came = Array.isArray(also) ? `${also.length} of them` : show(also);
    const reason = `expected at most ${ALSO_MAX} of { resource, consume }, got ${came}`;
    throw new ValidationError("also", also, reason);
  }
  if (limits !== undefined && also.length > 0) {
    const reason = "limits of a call are for one resource: leave out either also or limits";
    throw new ValidationError("also", also, reason);
  }
  const seen = new Set([resource]);
  return (also as readonly AlsoRequest[]).map((part, at) => {
    checkFields(`also[${at}]`, part, ["resource", "consume"]);
    const name = checkResource(part.resource);
    if (seen.has(name)) {
      const reason = `the resource "${name}" is given twice`;
      throw new ValidationError(`also[${at}].resource`, name, reason);
    }
    seen.add(name);
    return { resource: name, amounts: checkAmounts(`also[${at}].consume`, part.consume, 0) };
  });
}

function checkSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined || typeof signal?.throwIfAborted === "function") return signal;
  throw new ValidationError("signal", signal, `expected an AbortSignal, got ${show(signal)}`);
}

/** Entity, resource and limits, as every question about a bucket names them. */
export function checkTarget(
  target: {
    readonly entityId: string;
    readonly resource: string;
    readonly limits?: readonly LimitInput[] | undefined;
  },
  fields: readonly string[] = TARGET_FIELDS,
): { entityId: string; resource: string; limits: readonly Limit[] | undefined } {
  checkFields("request", target, fields);
  return {
    entityId: checkEntityId(target.entityId),
    resource: checkResource(target.resource),
    limits: target.limits === undefined ? undefined : checkLimits(target.limits),
  };
}
