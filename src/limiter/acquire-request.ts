/** What an acquire asks for, checked before anything else happens. */

import { checkFields, checkInteger, checkOptions, show, TOKENS_MAX } from "../domain/check.ts";
import { ValidationError } from "../domain/errors.ts";
import { checkLimits, type Limit, type LimitInput } from "../domain/limit.ts";
import { checkEntityId, checkResource } from "../domain/names.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/unavailability.ts";

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
export interface AcquireRequest {
  readonly entityId: string;
  readonly resource: string;
  /** Whole tokens >= 0 per limit name; only names of limits that the entity has. */
  readonly consume: Readonly<Record<string, number>>;
  /** Instead of the stored limits, for this call. */
  readonly limits?: readonly LimitInput[] | undefined;
  readonly onUnavailable?: OnUnavailable | undefined;
  /** 0 (default): refuse at once; above: wait in line, up to that long. */
  readonly maxWaitSeconds?: number | undefined;
  /** Ends a wait; what was already granted is given back. */
  readonly signal?: AbortSignal | undefined;
}

const TARGET_FIELDS = ["entityId", "resource", "limits"] as const;
const REQUEST_FIELDS = [
  ...TARGET_FIELDS,
  "consume",
  "onUnavailable",
  "maxWaitSeconds",
  "signal",
] as const satisfies readonly (keyof AcquireRequest)[];

/** Amounts in whole tokens by limit name. */
export type Amounts = ReadonlyMap<string, number>;

/** A request whose parts have been checked. */
export interface CheckedRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  readonly limits: readonly Limit[] | undefined;
  readonly onUnavailable: OnUnavailable | undefined;
  readonly maxWaitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Asks for something, and for nothing else. */
export function isPlain(request: AcquireRequest): boolean {
  if (typeof request !== "object" || request === null) return false;
  if (Object.getPrototypeOf(request) !== Object.prototype) return false;
  for (const name in request) {
    if (name !== "entityId" && name !== "resource" && name !== "consume") return false;
  }
  return true;
}

export function checkAcquireRequest(request: AcquireRequest): CheckedRequest {
  if (typeof request !== "object" || request === null) {
    throw new ValidationError("request", request, `expected an object, got ${show(request)}`);
  }
  const { maxWaitSeconds = 0, onUnavailable } = request;
  if (typeof maxWaitSeconds !== "number" || !(maxWaitSeconds >= 0)) {
    throw new ValidationError(
      "maxWaitSeconds",
      maxWaitSeconds,
      `expected a number >= 0, got ${show(maxWaitSeconds)}`,
    );
  }
  const { entityId, resource, limits } = checkTarget(request, REQUEST_FIELDS);
  return {
    entityId,
    resource,
    limits,
    amounts: checkAmounts("consume", request.consume, 0),
    onUnavailable: onUnavailable === undefined ? undefined : checkOnUnavailable(onUnavailable),
    maxWaitMs: maxWaitSeconds * 1000,
    signal: checkSignal(request.signal),
  };
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

/** Whole tokens by name, each at least `min`. Names are checked against the limits later. */
export function checkAmounts(
  field: string,
  amounts: Readonly<Record<string, number>>,
  min: number,
): Amounts {
  checkOptions(field, amounts, "an object like { rpm: 1, tpm: 500 }");
  const checked = new Map<string, number>();
  for (const name of Object.keys(amounts)) {
    const amount = amounts[name] as number;
    // Most amounts are in order, and need no name for a message.
    const inOrder = Number.isInteger(amount) && amount >= min && amount <= TOKENS_MAX;
    if (!inOrder) checkInteger(`${field}.${name}`, amount, min, TOKENS_MAX);
    checked.set(name, amount);
  }
  return checked;
}

/** Refuses names that none of the limits has. */
export function checkAmountNames(field: string, amounts: Amounts, limits: readonly Limit[]): void {
  for (const name of amounts.keys()) {
    if (limits.some((limit) => limit.name === name)) continue;
    const names = limits.map((limit) => limit.name).join(", ");
    throw new ValidationError(
      field,
      name,
      `there is no limit ${show(name)} here; the limits are ${names || "none"}`,
    );
  }
}
