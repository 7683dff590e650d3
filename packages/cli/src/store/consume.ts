/** `-c rpm=1 -c tpm=500`: the amounts that a call consumes. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { Decision, Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { type LimitStatus, resetZone } from "@zae-limiter/limiter/domain/limit-status.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import { type Call, type OptionSpec, UsageError } from "../frame/command.ts";
import { type Amount, readAmount } from "../terminal/amounts.ts";
import { shownName } from "../terminal/bars.ts";
import { parseLimits } from "../terminal/limit-text.ts";
import { decimalNumber, duration, shownAmount } from "../terminal/numbers.ts";

const WAIT_SECONDS_MAX = 86_400;

export interface ConsumeOptions {
  readonly consume: readonly Amount[];
  readonly wait: number;
  readonly limit: readonly string[];
}

export const TARGET_ARGUMENTS = [
  { name: "<entity>", text: "the entity, e.g. key-1" },
  { name: "<resource>", text: "the resource, e.g. gpt-4" },
] as const;

/** Limits for one call, instead of the stored ones. */
export const CALL_LIMITS_OPTION: OptionSpec = {
  flags: "-l, --limit <limit>",
  text: "use this limit instead of the stored ones, e.g. rpm:100; repeatable",
  repeat: true,
};

export const CONSUME_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "-c, --consume <name=amount>",
    text: "how much of which limit, e.g. rpm=1 or 'usd=$0.05'; repeatable",
    required: true,
    repeat: true,
    parse: (text) => readAmount(text, "=", "rpm=1"),
  },
  {
    flags: "-w, --wait <seconds>",
    text: "wait in the queue up to this long instead of being refused at once",
    default: 0,
    parse: decimalNumber(0, WAIT_SECONDS_MAX),
  },
  CALL_LIMITS_OPTION,
];

/** Acquires the amounts of the options, and waits as long as they allow. */
export async function decide(
  { args, options, open, progress }: Call<ConsumeOptions>,
  signal: AbortSignal,
): Promise<Decision> {
  const request = requestOf(args, options, signal);
  const repository = await open(request.limits === undefined ? "change" : "write");
  const limiter = new RateLimiter(repository, { totals: true });
  if (options.wait > 0) progress(`Waiting for up to ${duration(options.wait)} …`);
  return limiter.tryAcquire(request);
}

function requestOf(
  [entityId = "", resource = ""]: readonly string[],
  options: ConsumeOptions,
  signal: AbortSignal,
): AcquireRequest {
  const names = options.consume.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new UsageError(`-c names ${twice} twice`);
  return {
    entityId,
    resource,
    consume: Object.fromEntries(options.consume.map(({ name, tokens }) => [name, tokens])),
    ...callLimits(options),
    maxWaitSeconds: options.wait,
    signal,
  };
}

export function callLimits({ limit }: { readonly limit: readonly string[] }) {
  return limit.length === 0 ? {} : { limits: parseLimits(limit) };
}

/** Returns `1 rpm, 500 tpm`. */
export function amountsText(amounts: readonly Amount[]): string {
  return amounts.map(({ name, tokens }) => `${shownAmount(name, tokens)} ${name}`).join(", ");
}

/** A refusal as commands show it. */
export interface Refused {
  /** The missing amounts and when to try again, in one line. */
  readonly line: string;
  /** `Infinity` when the request can never be granted. */
  readonly retryAfterSeconds: number;
  readonly statuses: readonly LimitStatus[];
}

export function refused({ violations, retryAfterSeconds, statuses }: Refusal): Refused {
  const missing = violations
    .map((status) => {
      const needed = `${shownAmount(status.limitName, status.requested)} ${shownName(status)}`;
      return `${status.entityId} needs ${needed}, has ${shownAmount(status.limitName, status.available)}`;
    })
    .join("; ");
  const about = violations.some(({ estimated }) => estimated === true) ? "about " : "";
  const advice = Number.isFinite(retryAfterSeconds)
    ? `try again in ${about}${duration(retryAfterSeconds)}${resetText(violations)}`
    : "that is more than the limit can ever hold";
  return { line: `${missing}; ${advice}`, retryAfterSeconds, statuses };
}

/** Returns when the limit that takes the longest resets, by the clock of its zone. */
function resetText(violations: readonly LimitStatus[]): string {
  const [longest] = violations.toSorted(
    (one, other) => other.retryAfterSeconds - one.retryAfterSeconds,
  );
  if (longest?.resetsAtMs === undefined) return "";
  return ` (resets ${localText(resetZone(longest), longest.resetsAtMs)})`;
}
