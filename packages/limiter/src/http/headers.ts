/**
 * Response headers that show a client what is left, in the style of the newest IETF draft
 * (draft-ietf-httpapi-ratelimit-headers-10), of its older versions, and of two vendors.
 */

import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { TOTAL } from "../domain/names.ts";

export const HEADER_STYLES = ["draft", "draft-7", "draft-6", "legacy", "openai"] as const;

/** `draft` is the newest IETF draft; `legacy` are the `X-RateLimit-*` headers. */
export type HeaderStyle = (typeof HEADER_STYLES)[number];

/** Styles that say at what time a bucket is full; the others count from now. */
export const TELLS_TIME: readonly HeaderStyle[] = ["legacy"];

/** One header. A list header of a second middleware is appended to that of the first. */
export interface Header {
  /** In lower case, as most frameworks send it: those that change names have nothing to do. */
  readonly name: string;
  readonly value: string;
  readonly isList?: true;
}

/** The facts that headers are made of. */
export interface HeaderSource {
  /** Statuses that may be shown: of the entity itself, and of ancestors where they are exposed. */
  readonly statuses: readonly LimitStatus[];
  /** The entity itself, which may have no limits of its own. */
  readonly entityId: string;
  /** Epoch milliseconds, for the styles in `TELLS_TIME`. */
  readonly nowMs: number;
}

/** Returns the statuses of the entity itself, which may always be shown. */
export function ownStatuses(statuses: readonly LimitStatus[], own: string): readonly LimitStatus[] {
  for (const { entityId } of statuses) {
    if (entityId !== own) return statuses.filter((status) => status.entityId === own);
  }
  return statuses;
}

/** Returns the headers of all styles; none where no limit may be shown. */
export function headersOf(styles: readonly HeaderStyle[], source: HeaderSource): readonly Header[] {
  if (source.statuses.length === 0) return [];
  const [style] = styles;
  if (style !== undefined && styles.length === 1) return WRITERS[style](source);
  return styles.flatMap((each) => WRITERS[each](source));
}

/** Returns the headers of one style. */
type Writer = (source: HeaderSource) => readonly Header[];

const WRITERS: Readonly<Record<HeaderStyle, Writer>> = {
  draft: ({ statuses, entityId }) => {
    const { policy, names, waits } = describedStatuses(statuses, entityId);
    const states = statuses.map(
      (status, at) =>
        (names[at] as string) + left(status) + waitParameter(status, waits[at] as string),
    );
    return [policy, { name: "ratelimit", value: states.join(""), isList: true }];
  },
  "draft-7": ({ statuses }) => {
    const scarcest = scarcestOf(statuses);
    const { capacity } = scarcest.limit;
    const state = `remaining=${left(scarcest)}, reset=${fullInSeconds(scarcest)}`;
    return [
      { name: "ratelimit-policy", value: windowOf(scarcest) },
      { name: "ratelimit", value: `limit=${capacity}, ${state}` },
    ];
  },
  "draft-6": ({ statuses }) => {
    const scarcest = scarcestOf(statuses);
    return [
      { name: "ratelimit-policy", value: windowOf(scarcest) },
      { name: "ratelimit-limit", value: String(scarcest.limit.capacity) },
      { name: "ratelimit-remaining", value: String(left(scarcest)) },
      { name: "ratelimit-reset", value: String(fullInSeconds(scarcest)) },
    ];
  },
  legacy: ({ statuses, nowMs }) => {
    const scarcest = scarcestOf(statuses);
    const resetAt = Math.ceil(nowMs / 1000) + fullInSeconds(scarcest);
    return [
      { name: "x-ratelimit-limit", value: String(scarcest.limit.capacity) },
      { name: "x-ratelimit-remaining", value: String(left(scarcest)) },
      { name: "x-ratelimit-reset", value: String(resetAt) },
    ];
  },
  openai: ({ statuses }) => [
    ...openaiHeaders(statuses, "rpm", "requests"),
    ...openaiHeaders(statuses, "tpm", "tokens"),
  ],
};

function openaiHeaders(
  statuses: readonly LimitStatus[],
  limitName: string,
  unit: "requests" | "tokens",
): readonly Header[] {
  const status = scarcestNamed(statuses, limitName);
  if (status === undefined) return [];
  return [
    { name: `x-ratelimit-limit-${unit}`, value: String(status.limit.capacity) },
    { name: `x-ratelimit-remaining-${unit}`, value: String(left(status)) },
    { name: `x-ratelimit-reset-${unit}`, value: duration(fullInMs(status)) },
  ];
}

/** Returns the limit of a name with the smallest share left: a total may leave less. */
export function scarcestNamed(
  statuses: readonly LimitStatus[],
  limitName: string,
): LimitStatus | undefined {
  const first = statuses.find((each) => each.limitName === limitName);
  if (first === undefined) return undefined;
  const { entityId } = first;
  return scarcestOf(
    statuses.filter((each) => each.limitName === limitName && each.entityId === entityId),
  );
}

/** Limits that count tokens, by the names that are common for them. */
const TOKENS_PATTERN = /^[io]?tp[smhd]$|token/i;

/** The part of `draft` that does not depend on balances. */
interface Description {
  readonly limits: readonly Limit[];
  readonly policy: Header;
  /** The text before the balance of each limit. */
  readonly names: readonly string[];
  /** The text behind the balance of each limit, unless the bucket is full or has refused. */
  readonly waits: readonly string[];
}

/** Limits never change, and most requests meet the same few: by the first of them. */
const known = new WeakMap<Limit, Description>();
/** Most requests meet the very list that the request before has met. */
let latest: Description | undefined;

/** Describes the limits of one entity. */
function describedBy(limits: readonly Limit[]): Description {
  if (latest?.limits !== limits) latest = knownOf(limits);
  return latest;
}

function knownOf(limits: readonly Limit[]): Description {
  const first = limits[0] as Limit;
  const before = known.get(first);
  if (before !== undefined && areSame(before.limits, limits)) return before;
  const description = describe(
    limits,
    limits.map(({ name }) => name),
  );
  known.set(first, description);
  return description;
}

function areSame(left: readonly Limit[], right: readonly Limit[]): boolean {
  if (left === right) return true;
  return left.length === right.length && left.every((limit, at) => limit === right[at]);
}

/**
 * Limits of totals and ancestors are named with what has them, and the periods of quotas differ, so
 * that they are not kept.
 */
function describedStatuses(statuses: readonly LimitStatus[], own: string): Description {
  const limits = statuses.map(({ limit }) => limit);
  const isPlain = statuses.every(
    ({ entityId, resource, limit }) =>
      entityId === own && resource !== TOTAL && limit.kind === "rate",
  );
  if (isPlain) return describedBy(limits);
  return describe(
    limits,
    statuses.map((status) => policyName(status, own)),
    statuses,
  );
}

/** Returns the name of a limit among those of a request: `rpm`, `@all/rpm`, `team-a/rpm`. */
export function policyName({ entityId, resource, limitName }: LimitStatus, own: string): string {
  const name = resource === TOTAL ? `${TOTAL}/${limitName}` : limitName;
  return entityId === own ? name : `${entityId}/${name}`;
}

function describe(
  limits: readonly Limit[],
  limitNames: readonly string[],
  statuses: readonly LimitStatus[] = [],
): Description {
  const names = limitNames.map(quoted);
  const policies = limits.map((limit, at) => names[at] + parametersOf(limit, statuses[at]));
  return {
    limits,
    policy: { name: "ratelimit-policy", value: policies.join(", "), isList: true },
    names: names.map((name, at) => `${at === 0 ? "" : ", "}${name};r=`),
    waits: limits.map(({ refillAmount, refillPeriodSeconds, kind }, at) =>
      kind === "rate"
        ? `;t=${Math.ceil(refillPeriodSeconds / refillAmount)}`
        : `;t=${Math.ceil(statuses[at]?.fullAfterSeconds ?? 0)}`,
    ),
  };
}

function parametersOf(limit: Limit, status: LimitStatus | undefined): string {
  const unit = TOKENS_PATTERN.test(limit.name) ? ';zae-unit="tokens"' : "";
  return `;q=${limit.capacity}${windowParameter(limit, status)}${unit}`;
}

/** Returns the period of a rate, or the length of that in force; slots have none. */
function windowParameter(
  { kind, rule, refillPeriodSeconds }: Limit,
  status: LimitStatus | undefined,
): string {
  if (kind === "rate") return `;w=${refillPeriodSeconds}`;
  const { periodStartMs, resetsAtMs } = status ?? {};
  if (periodStartMs !== undefined && resetsAtMs !== undefined) {
    return `;w=${Math.ceil((resetsAtMs - periodStartMs) / 1000)}`;
  }
  return rule?.kind === "session" ? `;w=${rule.seconds}` : "";
}

/** A full bucket has no token to wait for. */
const FULL = ";t=0";

/** Seconds until the requested amount fits, or until one token comes back; absent when never. */
function waitParameter(status: LimitStatus, oneToken: string): string {
  const { available, exceeded, limit, retryAfterSeconds } = status;
  if (exceeded) {
    return Number.isFinite(retryAfterSeconds) ? `;t=${Math.ceil(retryAfterSeconds)}` : "";
  }
  return available >= limit.capacity ? FULL : oneToken;
}

/** Returns the tokens left; a bucket in debt has none. */
function left({ available }: LimitStatus): number {
  return Math.max(0, available);
}

function windowOf(status: LimitStatus): string {
  return `${status.limit.capacity}${windowParameter(status.limit, status)}`;
}

/** Returns the limit with the smallest share left; the first of equals. */
function scarcestOf(statuses: readonly LimitStatus[]): LimitStatus {
  return statuses.reduce((scarcest, status) =>
    status.available / status.limit.capacity < scarcest.available / scarcest.limit.capacity
      ? status
      : scarcest,
  );
}

/** Parts of tokens count: a limit of one token an hour comes nearer all the time. */
function fullInMs({ fullAfterSeconds }: LimitStatus): number {
  return Math.round(fullAfterSeconds * 1000);
}

function fullInSeconds(status: LimitStatus): number {
  return Math.ceil(fullInMs(status) / 1000);
}

/** Returns a duration as OpenAI writes it: `120ms`, `6s`, `1m30s`, `2h0m5s`. */
function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${milliseconds}ms`;
  const seconds = Math.ceil(milliseconds / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = `${seconds % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}

/**
 * Returns a string of a structured field. Names of limits and ids of entities are visible ASCII.
 */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
