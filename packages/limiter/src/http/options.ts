/** The options of every HTTP adapter, checked when the middleware is made. */

import {
  type Amounts,
  checkAmounts,
  checkMissingLimits,
  type MissingLimits,
} from "../acquire/acquire-request.ts";
import type { Refusal } from "../acquire/decision.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import { checkChoice, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import { checkLimits, type Limit, type LimitInput } from "../domain/limit.ts";
import { checkCallResource, checkEntityId } from "../domain/names.ts";
import {
  type AnyOptionTable,
  checkByTable,
  type Filled,
  FLAG,
  FUNCTION,
  number,
  type OptionCheck,
  type OptionTable,
  oneOf,
  whole,
} from "../domain/options.ts";
import type { HttpEvent } from "./events.ts";
import { HEADER_STYLES, type HeaderStyle } from "./headers.ts";

/** Replaces the answer to a refused request. Absent parts keep their defaults. */
export interface RefusedAnswer {
  /** The status of the answer. */
  readonly status?: number;
  /** Headers of the answer, which replace those of the same name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
}

/** How a response ended. */
export interface Outcome {
  /** The status of the response. */
  readonly status: number;
  /** The client was gone before the response was complete. */
  readonly aborted: boolean;
}

/**
 * Options of `rateLimit`. `R` is the framework's request.
 *
 * @example
 * ```ts
 * import type { HttpOptions } from 'zae-limiter/express';
 * const options: HttpOptions = {
 *   limits: ['rpm:60', 'tpm:10000'],
 *   consume: { rpm: 1, tpm: 200 },
 *   headers: ['draft', 'openai'],
 * };
 * ```
 */
export interface HttpOptions<R> {
  /** Default: one `memory:` limiter per middleware. */
  readonly limiter?: RateLimiter | Promise<RateLimiter>;
  /** Limits of every request, instead of the stored ones. */
  readonly limits?: readonly LimitInput[];
  /**
   * Returns the key of a request; `undefined`, `null` (which `Headers.get` returns) or an empty
   * text means that it has none. Default: the client's address.
   */
  readonly entityId?: (
    request: R,
  ) => string | null | undefined | Promise<string | null | undefined>;
  /** Bits of an IPv6 address that identify a client. Default 56. */
  readonly ipv6Subnet?: number;
  /** The entity of requests without a key; without it they get 401. */
  readonly anonymous?: string;
  /** Default `http`. */
  readonly resource?: string | ((request: R) => string | Promise<string>);
  /** Default: 1 of each limit in `limits`, or else 1 of each stored limit that applies. */
  readonly consume?: Amounts | ((request: R) => Amounts | Promise<Amounts>);
  /** How long a request may wait for tokens. Default 0. */
  readonly maxWaitSeconds?: number;
  readonly onUnavailable?: OnUnavailable;
  readonly missingLimits?: MissingLimits;
  /** Requests for which it returns true are not limited. */
  readonly skip?: (request: R) => boolean | Promise<boolean>;
  /** `observe` refuses nothing; requests it would have refused are counted and get a header. */
  readonly mode?: "enforce" | "observe";
  /** Default `draft`, the newest IETF draft. */
  readonly headers?: HeaderStyle | readonly HeaderStyle[] | false;
  /** Replaces the answer to a refused request. */
  readonly refused?: (refusal: Refusal, request: R) => RefusedAnswer | Promise<RefusedAnswer>;
  /** Returns true when the tokens of a request are refunded at its end. Default: never. */
  readonly refundWhen?: (outcome: Outcome) => boolean;
  /** `rollback` refunds a request whose handler threw before it answered. Default `commit`. */
  readonly onError?: "commit" | "rollback";
  /** Whether headers and bodies show limits of ancestors. Default false. */
  readonly exposeParents?: boolean;
  /** Called with every decision. */
  readonly events?: (event: HttpEvent) => void;
}

/** Options as each request needs them; those without a default may be `undefined`. */
export interface CheckedOptions<R> {
  readonly limiter: HttpOptions<R>["limiter"];
  readonly limits: readonly Limit[] | undefined;
  readonly entityId: HttpOptions<R>["entityId"];
  readonly ipv6Subnet: number;
  readonly anonymous: string | undefined;
  readonly resource: string | ((request: R) => string | Promise<string>);
  readonly consume: HttpOptions<R>["consume"];
  readonly maxWaitSeconds: number;
  readonly onUnavailable: OnUnavailable | undefined;
  readonly missingLimits: MissingLimits | undefined;
  readonly skip: HttpOptions<R>["skip"];
  readonly observes: boolean;
  readonly headers: readonly HeaderStyle[];
  readonly refused: HttpOptions<R>["refused"];
  readonly refundWhen: (outcome: Outcome) => boolean;
  readonly refundsErrors: boolean;
  readonly exposeParents: boolean;
  readonly events: HttpOptions<R>["events"];
}

const IPV6_BITS = 128;

const OPTIONS = {
  limiter: { check: checkLimiter },
  limits: { check: checkOwnLimits },
  entityId: { check: FUNCTION },
  ipv6Subnet: { check: whole(1, IPV6_BITS), default: 56 },
  anonymous: { check: checkAnonymous },
  resource: { check: functionOr(checkCallResource), default: "http" },
  consume: { check: functionOr((value: Amounts) => checkAmounts("consume", value)) },
  maxWaitSeconds: { check: number(0), default: 0 },
  onUnavailable: { check: (_, value) => checkOnUnavailable(value) },
  missingLimits: { check: (_, value) => checkMissingLimits(value) },
  skip: { check: FUNCTION },
  mode: { check: oneOf("enforce", "observe"), default: "enforce" },
  headers: { check: checkStyles, default: "draft" },
  refused: { check: FUNCTION },
  refundWhen: { check: FUNCTION, default: () => false },
  onError: { check: oneOf("commit", "rollback"), default: "commit" },
  exposeParents: { check: FLAG, default: false },
  events: { check: FUNCTION },
} as const satisfies OptionTable<HttpOptions<unknown>>;

/** Checks everything that can be checked without a request; `more` are options of the adapter. */
export function checkHttpOptions<R>(
  options: HttpOptions<R>,
  more: AnyOptionTable = {},
): CheckedOptions<R> {
  const filled: Filled<HttpOptions<R>, typeof OPTIONS> = checkByTable(options, {
    ...OPTIONS,
    ...more,
  });
  const limits = filled.limits === undefined ? undefined : checkLimits(filled.limits);
  if (filled.limiter === undefined && limits === undefined) {
    throw new ValidationError(
      "limits",
      undefined,
      "expected `limits`, such as ['rpm:60'], or a `limiter` with stored limits",
    );
  }
  return {
    limiter: filled.limiter,
    limits,
    entityId: filled.entityId,
    ipv6Subnet: filled.ipv6Subnet,
    anonymous: filled.anonymous,
    resource: filled.resource,
    consume: consumeOf(filled, limits),
    maxWaitSeconds: filled.maxWaitSeconds,
    onUnavailable: filled.onUnavailable,
    missingLimits: filled.missingLimits,
    skip: filled.skip,
    observes: filled.mode === "observe",
    headers: stylesOf(filled.headers),
    refused: filled.refused,
    refundWhen: filled.refundWhen,
    refundsErrors: filled.onError === "rollback",
    exposeParents: filled.exposeParents,
    events: filled.events,
  };
}

/** Takes functions of a request, and values that the check takes. */
function functionOr<Value>(check: (value: Value) => unknown): OptionCheck {
  return (_, value) => {
    if (typeof value !== "function") check(value as Value);
  };
}

/** Refuses an empty list, which would limit nothing: `skip` says that more clearly. */
function checkOwnLimits(field: string, limits: unknown): void {
  if (checkLimits(limits as readonly LimitInput[]).length > 0) return;
  throw new ValidationError(field, limits, "expected at least one limit, such as ['rpm:60']");
}

/** Refuses an entity id with an error that names the option. */
function checkAnonymous(field: string, anonymous: unknown): void {
  try {
    checkEntityId(anonymous as string);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError(field, anonymous, error.reason);
  }
}

function checkLimiter(field: string, limiter: unknown): void {
  if (limiter instanceof RateLimiter) return;
  if (typeof (limiter as { then?: unknown } | null)?.then === "function") return;
  throw new ValidationError(
    field,
    limiter,
    `expected a RateLimiter, or a promise of one, got ${show(limiter)}`,
  );
}

/** Returns the amounts of a request: those given, else 1 of each limit in `limits`. */
function consumeOf<R>(
  { consume, missingLimits }: HttpOptions<R>,
  limits: readonly Limit[] | undefined,
): HttpOptions<R>["consume"] {
  if (typeof consume === "function" || limits === undefined) return consume;
  if (consume === undefined) return Object.fromEntries(limits.map(({ name }) => [name, 1]));
  const names = limits.map(({ name }) => name);
  const unknown = Object.keys(consume).find((name) => !names.includes(name));
  if (unknown === undefined || missingLimits === "ignore") return consume;
  const reason = `"${unknown}" is not one of the limits; expected ${names.join(", ")}`;
  throw new ValidationError("consume", unknown, reason);
}

function checkStyles(field: string, headers: unknown): void {
  const styles = stylesOf(headers as HttpOptions<unknown>["headers"]);
  for (const style of styles) checkChoice(field, style, HEADER_STYLES);
  const drafts = styles.filter((style) => style.startsWith("draft"));
  if (drafts.length <= 1) return;
  const reason = "expected at most one draft, because drafts use the same header names";
  throw new ValidationError(field, styles, `${reason}, got ${drafts.join(", ")}`);
}

function stylesOf(headers: HttpOptions<unknown>["headers"]): readonly HeaderStyle[] {
  if (headers === false || headers === undefined) return [];
  return Array.isArray(headers) ? headers : [headers as HeaderStyle];
}
