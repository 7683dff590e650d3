/** The request of an acquire, and its checks, which come before anything else. */

import {
  checkChoice,
  checkFields,
  checkInteger,
  checkOptions,
  isLiteral,
  show,
  TOKENS_MAX,
} from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import { checkLimits, isCheckedList, type Limit, type LimitInput } from "../domain/limit.ts";
import { checkCallResource, checkEntityId, checkResource, TOTAL } from "../domain/names.ts";
import { FLAG } from "../domain/options.ts";
import { bucketId } from "../records/keys.ts";
import { AMOUNTS_FOR } from "./internal-names.ts";
import { checkOnError, type OnError } from "./on-error.ts";

/**
 * Whole tokens by limit name: of any names, or of those that are given.
 *
 * @example
 * ```ts
 * import type { Amounts } from 'zae-limiter';
 * const any: Amounts = { rpm: 1, tpm: 500 };
 * const checked: Amounts<'rpm' | 'tpm'> = { rpm: 1 }; // { rmp: 1 } would not compile
 * ```
 */
export type Amounts<Names extends string = string> = Readonly<AmountRecord<Names>>;

/** Whole tokens by limit name, in a new object, which belongs to the caller. */
export type AmountRecord<Names extends string = string> = string extends Names
  ? Record<string, number>
  : Partial<Record<Names, number>>;

/** Checked amounts in whole tokens. */
export type AmountsByName = ReadonlyMap<string, number>;

/**
 * The request of an acquire.
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
  /** The resource that is consumed, such as a model or an endpoint. */
  readonly resource: string;
  /** Whole tokens >= 0 per limit name; only names of limits that the entity has. */
  readonly consume: Amounts<Names>;
  /** Up to 15 more parts: all are granted, or none is consumed. Not with `limits`. */
  readonly also?: readonly AlsoRequest<Names>[] | undefined;
  /** Instead of the stored limits, for this call. */
  readonly limits?: readonly LimitInput[] | undefined;
  /** The policy while the store cannot answer; overrides those of the limiter and the store. */
  readonly onUnavailable?: OnUnavailable | undefined;
  /** 0 (default): refuse at once; above: wait in the queue, up to that long. */
  readonly maxWaitSeconds?: number | undefined;
  /**
   * How long the lease may hold slots; then they are given back, with the warning `slot_overdue`:
   * for programs that forget to end a lease. No bound when absent.
   */
  readonly maxHoldSeconds?: number | undefined;
  /** Ends the wait for tokens, and nothing after the grant: granted work ends by itself. */
  readonly signal?: AbortSignal | undefined;
  /** For `run`: how the lease ends when the work throws. Default `rollback`. */
  readonly onError?: OnError | undefined;
  /** How a name in `consume` is treated that the entity has no limit for. Default `error`. */
  readonly missingLimits?: MissingLimits | undefined;
  /** Whether limits over all resources count too (`TOTAL`). Default: the limiter's `totals`. */
  readonly totals?: boolean | undefined;
}

/** Another part of the same acquire: of another resource, or of another entity. */
export interface AlsoRequest<Names extends string = string> {
  /** The other resource; `TOTAL` for limits over all resources. */
  readonly resource: string;
  /** The entity that consumes it; that of the request when absent. */
  readonly entityId?: string | undefined;
  /** Whole tokens >= 0 per limit name. */
  readonly consume: Amounts<Names>;
  /** Instead of the stored limits and totals of the entity, for this part. */
  readonly limits?: readonly LimitInput[] | undefined;
}

/** Returns amounts by the names of the limits that apply; `undefined`: those of the request. */
export type AmountsFor = (limitNames: ReadonlySet<string>) => Promise<AmountsByName | undefined>;

/** A request of an edge, whose amounts may depend on the limits. */
export interface EdgeRequest extends AcquireRequest {
  readonly [AMOUNTS_FOR]?: AmountsFor | undefined;
}

const ALSO_MAX = 15;
const TARGET_FIELDS = ["entityId", "resource", "limits", "totals"] as const;
const REQUEST_FIELDS = [
  ...TARGET_FIELDS,
  "consume",
  "also",
  "onUnavailable",
  "maxWaitSeconds",
  "maxHoldSeconds",
  "signal",
  "onError",
  "missingLimits",
] as const satisfies readonly (keyof AcquireRequest)[];

/** A bucket to read. */
export interface StatusRequest {
  /** The entity to read. */
  readonly entityId: string;
  /** The resource to read. */
  readonly resource: string;
  /** Instead of the stored limits. */
  readonly limits?: readonly LimitInput[] | undefined;
  /** Whether limits over all resources are read too. Default: the limiter's `totals`. */
  readonly totals?: boolean | undefined;
}

/** Another part of a call, after its checks. */
export interface CheckedAlso {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** Given with the call: the stored limits and the totals do not count then. */
  readonly limits?: readonly Limit[] | undefined;
}

const NO_OTHERS: readonly CheckedAlso[] = Object.freeze([]);

/** A request after its checks. */
export interface CheckedRequest {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  readonly amountsFor: AmountsFor | undefined;
  /** Other parts of the same call; none for most. */
  readonly also: readonly CheckedAlso[];
  readonly limits: readonly Limit[] | undefined;
  readonly onUnavailable: OnUnavailable | undefined;
  readonly maxWaitMs: number;
  readonly maxHoldMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly missingLimits: MissingLimits | undefined;
  /** Whether the total of each part counts too. */
  readonly totals: boolean;
}

/**
 * Whether a request may be an ordinary call: it does not wait, and all that it says beyond entity,
 * resource and amounts is known to be valid without checking each part. The buckets decide the rest
 * (`buckets/embedded/ordinary-call.ts`).
 */
export function isPlain(request: AcquireRequest): boolean {
  if (!isLiteral(request) || typeof request.entityId !== "string") return false;
  if (request.resource === TOTAL || (request as EdgeRequest)[AMOUNTS_FOR]) return false;
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
  if (name === "totals") return typeof value === "boolean";
  if (name === "maxWaitSeconds") return value === 0;
  return false;
}

/** Checks a request. `totals`: the setting of the limiter. */
export function checkAcquireRequest(request: AcquireRequest, totals: boolean): CheckedRequest {
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
  const maxHoldMs = checkMaxHold(request.maxHoldSeconds);
  const target = checkTarget(request, totals, REQUEST_FIELDS);
  const { entityId, limits } = target;
  const resource = checkCallResource(target.resource);
  if (request.onError !== undefined) checkOnError(request.onError);
  return {
    entityId,
    resource,
    limits,
    amounts: checkAmounts("consume", request.consume),
    amountsFor: (request as EdgeRequest)[AMOUNTS_FOR],
    also: checkAlso(request),
    totals: target.totals,
    onUnavailable: onUnavailable === undefined ? undefined : checkOnUnavailable(onUnavailable),
    maxWaitMs: maxWaitSeconds * 1000,
    maxHoldMs,
    signal: checkSignal(request.signal),
    missingLimits: missingLimits === undefined ? undefined : checkMissingLimits(missingLimits),
  };
}

function checkMaxHold(seconds: number | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  if (typeof seconds === "number" && seconds > 0) return seconds * 1000;
  const reason = `expected a number > 0, got ${show(seconds)}`;
  throw new ValidationError("maxHoldSeconds", seconds, reason);
}

function checkAlso(request: AcquireRequest): readonly CheckedAlso[] {
  const { also, resource, limits } = request;
  if (also === undefined) return NO_OTHERS;
  if (!Array.isArray(also) || also.length > ALSO_MAX) {
    const came = Array.isArray(also) ? `${also.length} of them` : show(also);
    const reason = `expected at most ${ALSO_MAX} of { resource, consume, entityId?, limits? }, got ${came}`;
    throw new ValidationError("also", also, reason);
  }
  if (limits !== undefined && also.length > 0) {
    const reason = "limits of a call are for one resource: leave out either also or limits";
    throw new ValidationError("also", also, reason);
  }
  const seen = new Set([bucketId({ entityId: request.entityId, resource })]);
  return (also as readonly AlsoRequest[]).map((part, at) => {
    checkFields(`also[${at}]`, part, ["resource", "consume", "entityId", "limits"]);
    const entityId = checkEntityId(part.entityId ?? request.entityId);
    const name = checkResource(part.resource);
    const bucket = bucketId({ entityId, resource: name });
    if (seen.has(bucket)) {
      const reason = `the resource "${name}" of "${entityId}" is given twice`;
      throw new ValidationError(`also[${at}].resource`, name, reason);
    }
    seen.add(bucket);
    const amounts = checkAmounts(`also[${at}].consume`, part.consume);
    const given = part.limits === undefined ? undefined : checkLimits(part.limits);
    return { entityId, resource: name, amounts, limits: given };
  });
}

function checkSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined || typeof signal?.throwIfAborted === "function") return signal;
  throw new ValidationError("signal", signal, `expected an AbortSignal, got ${show(signal)}`);
}

interface CheckedTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly Limit[] | undefined;
  readonly totals: boolean;
}

/** Checks entity, resource, limits and totals, which all requests about a bucket have. */
export function checkTarget(
  target: {
    readonly entityId: string;
    readonly resource: string;
    readonly limits?: readonly LimitInput[] | undefined;
    readonly totals?: boolean | undefined;
  },
  totals: boolean,
  fields: readonly string[] = TARGET_FIELDS,
): CheckedTarget {
  checkFields("request", target, fields);
  if (target.totals !== undefined) FLAG("totals", target.totals);
  return {
    entityId: checkEntityId(target.entityId),
    resource: checkResource(target.resource),
    limits: target.limits === undefined ? undefined : checkLimits(target.limits),
    totals: target.totals ?? totals,
  };
}

/**
 * `error` refuses a name that the entity has no limit for, with a `ValidationError`. `ignore` takes
 * it as unlimited for that entity; ancestors that have the limit still count it.
 *
 * @example
 * ```ts
 * import { RateLimiter, type MissingLimits } from 'zae-limiter';
 * const missingLimits: MissingLimits = 'ignore';
 * const limiter = await RateLimiter.open('memory:', { missingLimits });
 * await limiter.repository.limits.setSystem(['rpm:10']);
 * const lease = await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1, tpm: 500 },
 * });
 * console.log(lease.consumed); // { rpm: 1 }
 * await limiter.close();
 * ```
 */
export type MissingLimits = "error" | "ignore";

const MISSING_LIMITS: readonly MissingLimits[] = ["error", "ignore"];

/** Checks a mode that came from outside; `undefined` where none was given. */
export function checkMissingLimits(value: unknown): MissingLimits | undefined {
  return value === undefined ? undefined : checkChoice("missingLimits", value, MISSING_LIMITS);
}

const FORM = "an object like { rpm: 1, tpm: 500 }";

/** Checks whole tokens by name, none below zero. Names are checked against limits later. */
export function checkAmounts(field: string, amounts: Amounts): AmountsByName {
  checkOptions(field, amounts, FORM);
  const checked = new Map<string, number>();
  for (const name of Object.keys(amounts)) {
    const amount = amounts[name] as number;
    // Most amounts are valid, and need no name for a message.
    const inOrder = Number.isInteger(amount) && amount >= 0 && amount <= TOKENS_MAX;
    if (!inOrder) checkInteger(`${field}.${name}`, amount, 0, TOKENS_MAX);
    checked.set(name, amount);
  }
  return checked;
}

/**
 * Reads the amounts of a correction. What a call cost often comes from elsewhere, and an error here
 * would make `run` refund the whole call. So fractions round to the larger consumption, and an
 * amount that is missing or not finite is left out and reported. `sign` is -1 where a larger amount
 * is a smaller consumption.
 */
export function readCorrections(
  field: string,
  amounts: Readonly<Record<string, number | null | undefined>>,
  sign: 1 | -1,
  onMissing: (limitName: string, amount: unknown) => void,
): AmountsByName {
  checkOptions(field, amounts, FORM);
  const checked = new Map<string, number>();
  for (const name of Object.keys(amounts)) {
    const amount = amounts[name];
    if (isMissing(amount)) {
      onMissing(name, amount);
      continue;
    }
    if (typeof amount !== "number") {
      throw new ValidationError(
        `${field}.${name}`,
        amount,
        `expected a number, got ${show(amount)}`,
      );
    }
    const rounded = sign * Math.ceil(sign * amount);
    // Most amounts are valid, and need no name for a message.
    const inOrder = rounded >= -TOKENS_MAX && rounded <= TOKENS_MAX;
    if (!inOrder) checkInteger(`${field}.${name}`, rounded, -TOKENS_MAX, TOKENS_MAX);
    checked.set(name, rounded);
  }
  return checked;
}

/** Refuses names that none of the limits has. */
export function checkAmountNames(
  field: string,
  amounts: AmountsByName,
  limits: readonly Limit[],
): void {
  for (const name of amounts.keys()) {
    if (hasLimit(limits, name)) continue;
    const names = limits.map((limit) => limit.name).join(", ");
    throw new ValidationError(
      field,
      name,
      `there is no limit ${show(name)} here; the limits are ${names || "none"}`,
    );
  }
}

function hasLimit(limits: readonly Limit[], name: string): boolean {
  for (const limit of limits) if (limit.name === name) return true;
  return false;
}

function isMissing(amount: unknown): boolean {
  if (amount === undefined || amount === null) return true;
  return typeof amount === "number" && !Number.isFinite(amount);
}
