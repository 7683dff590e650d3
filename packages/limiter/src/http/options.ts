/** The options of every HTTP adapter, checked when the middleware is made. */

import { checkMissingLimits, type MissingLimits } from "../acquire/acquire-request.ts";
import { type Amounts, checkAmounts } from "../acquire/amounts.ts";
import type { Refusal } from "../acquire/decision.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import { checkFlag, checkInteger, checkOptions, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkOnUnavailable, type OnUnavailable } from "../domain/errors/unavailability.ts";
import { checkLimits, type Limit, type LimitInput } from "../domain/limit.ts";
import { checkEntityId, checkResource } from "../domain/names.ts";
import type { HttpEvent } from "./events.ts";
import { HEADER_STYLES, type HeaderStyle } from "./headers.ts";

/** What replaces the answer to a refused request. Absent parts keep their defaults. */
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
  /** Instead of the stored limits. */
  readonly limits?: readonly LimitInput[];
  /**
   * Returns the key of a request; `undefined`, `null` (which `Headers.get` returns) or an empty
   * text means that it has none. Default: the client's address.
   */
  readonly entityId?: (
    request: R,
  ) => string | null | undefined | Promise<string | null | undefined>;
  /** Bits of an IPv6 address that tell clients apart. Default 56. */
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
  /** `observe`: nothing is refused; what would have been is counted and marked by a header. */
  readonly mode?: "enforce" | "observe";
  /** Default `draft`, the newest IETF draft. */
  readonly headers?: HeaderStyle | readonly HeaderStyle[] | false;
  /** Replaces the answer to a refused request. */
  readonly refused?: (refusal: Refusal, request: R) => RefusedAnswer | Promise<RefusedAnswer>;
  /** Returns true when the tokens of a request are refunded at its end. Default: never. */
  readonly refundWhen?: (outcome: Outcome) => boolean;
  /** What happens to the tokens when the handler threw before it answered. Default `commit`. */
  readonly onError?: "commit" | "rollback";
  /** Whether headers and bodies show limits of ancestors. Default false. */
  readonly exposeParents?: boolean;
  /** Called with every decision. */
  readonly events?: (event: HttpEvent) => void;
}

/** Options that have no default here. */
type Given<R> = {
  readonly [Name in
    | "limiter"
    | "entityId"
    | "anonymous"
    | "consume"
    | "onUnavailable"
    | "missingLimits"
    | "skip"
    | "refused"
    | "events"]: HttpOptions<R>[Name];
};

/** The same, complete. */
export interface CheckedOptions<R> extends Given<R> {
  readonly limits: readonly Limit[] | undefined;
  readonly ipv6Subnet: number;
  readonly resource: string | ((request: R) => string | Promise<string>);
  readonly maxWaitSeconds: number;
  readonly observes: boolean;
  readonly headers: readonly HeaderStyle[];
  readonly refundWhen: (outcome: Outcome) => boolean;
  readonly refundsErrors: boolean;
  readonly exposeParents: boolean;
}

const NAMES: readonly (keyof HttpOptions<unknown>)[] = [
  "limiter",
  "limits",
  "entityId",
  "ipv6Subnet",
  "anonymous",
  "resource",
  "consume",
  "maxWaitSeconds",
  "onUnavailable",
  "missingLimits",
  "skip",
  "mode",
  "headers",
  "refused",
  "refundWhen",
  "onError",
  "exposeParents",
  "events",
];

const DEFAULT_RESOURCE_NAME = "http";
const DEFAULT_IPV6_SUBNET = 56;
const IPV6_BITS = 128;

/** Checks everything that can be checked without a request; `more` names options of the adapter. */
export function checkHttpOptions<R>(
  options: HttpOptions<R>,
  more: readonly string[] = [],
): CheckedOptions<R> {
  checkNames(options, [...NAMES, ...more]);
  const limits = options.limits === undefined ? undefined : checkOwnLimits(options.limits);
  if (options.limiter === undefined && limits === undefined) {
    throw new ValidationError(
      "limits",
      undefined,
      "expected `limits`, such as ['rpm:60'], or a `limiter` with stored limits",
    );
  }
  const {
    ipv6Subnet = DEFAULT_IPV6_SUBNET,
    maxWaitSeconds = 0,
    mode = "enforce",
    onError = "commit",
    resource = DEFAULT_RESOURCE_NAME,
  } = options;
  checkFlag("exposeParents", options.exposeParents);
  return {
    limiter: checkLimiter(options.limiter),
    limits,
    entityId: options.entityId,
    ipv6Subnet: checkInteger("ipv6Subnet", ipv6Subnet, 1, IPV6_BITS),
    anonymous: options.anonymous === undefined ? undefined : checkAnonymous(options.anonymous),
    resource: typeof resource === "function" ? resource : checkResource(resource),
    consume: checkConsume(options.consume, limits, options.missingLimits),
    maxWaitSeconds: checkWait(maxWaitSeconds),
    onUnavailable:
      options.onUnavailable === undefined ? undefined : checkOnUnavailable(options.onUnavailable),
    missingLimits: checkMissingLimits(options.missingLimits),
    skip: options.skip,
    observes: checkChoice("mode", mode, ["enforce", "observe"]) === "observe",
    headers: checkStyles(options.headers),
    refused: options.refused,
    refundWhen: options.refundWhen ?? (() => false),
    refundsErrors: checkChoice("onError", onError, ["commit", "rollback"]) === "rollback",
    exposeParents: options.exposeParents === true,
    events: options.events,
  };
}

/** A typo must not quietly become a default. */
function checkNames<R>(options: HttpOptions<R>, names: readonly string[]): void {
  checkOptions("options", options, `an object like { ${names.slice(0, 4).join(", ")}, … }`);
  for (const [name, value] of Object.entries(options)) {
    if (names.includes(name)) continue;
    throw new ValidationError(
      name,
      value,
      `"${name}" is not an option; expected ${names.join(", ")}`,
    );
  }
  for (const name of ["entityId", "skip", "refused", "refundWhen", "events"] as const) {
    checkFunction(name, options[name]);
  }
}

/** An empty list would limit nothing, which `skip` says more clearly. */
function checkOwnLimits(limits: readonly LimitInput[]): readonly Limit[] {
  const checked = checkLimits(limits);
  if (checked.length > 0) return checked;
  throw new ValidationError("limits", limits, "expected at least one limit, such as ['rpm:60']");
}

/** The error names the option, not the entity id it becomes. */
function checkAnonymous(anonymous: string): string {
  try {
    return checkEntityId(anonymous);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError("anonymous", anonymous, error.reason);
  }
}

function checkLimiter(limiter: unknown): RateLimiter | Promise<RateLimiter> | undefined {
  if (limiter === undefined || limiter instanceof RateLimiter) return limiter;
  if (typeof (limiter as { then?: unknown } | null)?.then === "function") {
    return limiter as Promise<RateLimiter>;
  }
  throw new ValidationError(
    "limiter",
    limiter,
    `expected a RateLimiter, or a promise of one, got ${show(limiter)}`,
  );
}

function checkWait(seconds: number): number {
  if (typeof seconds === "number" && seconds >= 0) return seconds;
  throw new ValidationError(
    "maxWaitSeconds",
    seconds,
    `expected a number >= 0, got ${show(seconds)}`,
  );
}

function checkConsume<R>(
  consume: HttpOptions<R>["consume"],
  limits: readonly Limit[] | undefined,
  missingLimits: MissingLimits | undefined,
): HttpOptions<R>["consume"] {
  if (typeof consume === "function") return consume;
  if (consume === undefined) {
    return limits && Object.fromEntries(limits.map(({ name }) => [name, 1]));
  }
  checkAmounts("consume", consume, 0);
  if (limits !== undefined && missingLimits !== "ignore") {
    for (const name of Object.keys(consume)) {
      if (limits.some((limit) => limit.name === name)) continue;
      const known = limits.map((limit) => limit.name).join(", ");
      throw new ValidationError(
        "consume",
        name,
        `"${name}" is none of the limits; expected ${known}`,
      );
    }
  }
  return consume;
}

function checkStyles(headers: HttpOptions<unknown>["headers"] = "draft"): readonly HeaderStyle[] {
  if (headers === false) return [];
  const styles: readonly HeaderStyle[] = Array.isArray(headers) ? headers : [headers];
  for (const style of styles) checkChoice("headers", style, HEADER_STYLES);
  const drafts = styles.filter((style) => style.startsWith("draft"));
  if (drafts.length > 1) {
    throw new ValidationError(
      "headers",
      styles,
      `expected at most one draft, because drafts use the same header names, got ${drafts.join(", ")}`,
    );
  }
  return styles;
}

/** Checks an option that is one of a few words. */
export function checkChoice<T extends string>(field: string, value: T, choices: readonly T[]): T {
  if (choices.includes(value)) return value;
  const expected = choices.map((choice) => `"${choice}"`).join(" or ");
  throw new ValidationError(field, value, `expected ${expected}, got ${show(value)}`);
}

/** Checks an option that is a function, if it is given. */
export function checkFunction(field: string, value: unknown): void {
  if (value === undefined || typeof value === "function") return;
  throw new ValidationError(field, value, `expected a function, got ${show(value)}`);
}
