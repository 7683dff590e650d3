/**
 * Response headers that tell a client what is left, in the style of the newest IETF draft
 * (draft-ietf-httpapi-ratelimit-headers-10), of its older versions, and of two vendors.
 */

import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";

export const HEADER_STYLES = ["draft", "draft-7", "draft-6", "legacy", "openai"] as const;

/** `draft` is the newest IETF draft; `legacy` are the `X-RateLimit-*` headers. */
export type HeaderStyle = (typeof HEADER_STYLES)[number];

/** Styles that say at what time a bucket is full; the others count from now. */
export const TELLS_TIME: readonly HeaderStyle[] = ["legacy"];

/** One header. A list header of a second middleware is appended to that of the first. */
export interface Header {
  readonly name: string;
  readonly value: string;
  readonly isList?: true;
}

/** What headers are made of. */
export interface HeaderSource {
  /** Those that may be shown: of the entity itself, and of ancestors where they are exposed. */
  readonly statuses: readonly LimitStatus[];
  /** Epoch milliseconds, for the styles in `TELLS_TIME`. */
  readonly nowMs: number;
}

/** Returns the statuses of the entity itself, which may always be shown. */
export function ownStatuses(statuses: readonly LimitStatus[]): readonly LimitStatus[] {
  const own = statuses[0]?.entityId;
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
  draft: ({ statuses }) => {
    const { policies, names } = describedBy(statuses);
    let states = "";
    for (let at = 0; at < statuses.length; at += 1) {
      const status = statuses[at] as LimitStatus;
      states += (names[at] as string) + left(status) + waitParameter(status);
    }
    return [
      { name: "RateLimit-Policy", value: policies, isList: true },
      { name: "RateLimit", value: states, isList: true },
    ];
  },
  "draft-7": ({ statuses }) => {
    const scarcest = scarcestOf(statuses);
    const { capacity } = scarcest.limit;
    const state = `remaining=${left(scarcest)}, reset=${fullInSeconds(scarcest)}`;
    return [
      { name: "RateLimit-Policy", value: windowOf(scarcest) },
      { name: "RateLimit", value: `limit=${capacity}, ${state}` },
    ];
  },
  "draft-6": ({ statuses }) => {
    const scarcest = scarcestOf(statuses);
    return [
      { name: "RateLimit-Policy", value: windowOf(scarcest) },
      { name: "RateLimit-Limit", value: String(scarcest.limit.capacity) },
      { name: "RateLimit-Remaining", value: String(left(scarcest)) },
      { name: "RateLimit-Reset", value: String(fullInSeconds(scarcest)) },
    ];
  },
  legacy: ({ statuses, nowMs }) => {
    const scarcest = scarcestOf(statuses);
    const resetAt = Math.ceil(nowMs / 1000) + fullInSeconds(scarcest);
    return [
      { name: "X-RateLimit-Limit", value: String(scarcest.limit.capacity) },
      { name: "X-RateLimit-Remaining", value: String(left(scarcest)) },
      { name: "X-RateLimit-Reset", value: String(resetAt) },
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
  const status = statuses.find((each) => each.limitName === limitName);
  if (status === undefined) return [];
  return [
    { name: `x-ratelimit-limit-${unit}`, value: String(status.limit.capacity) },
    { name: `x-ratelimit-remaining-${unit}`, value: String(left(status)) },
    { name: `x-ratelimit-reset-${unit}`, value: duration(fullInMs(status)) },
  ];
}

/** Limits that count tokens, by the names that are common for them. */
const TOKENS_PATTERN = /^[io]?tp[smhd]$|token/i;

/** What `draft` says of some limits whatever their balances. */
interface Description {
  readonly limits: readonly Limit[];
  readonly policies: string;
  /** What comes before the balance of each limit. */
  readonly names: readonly string[];
}

/** Limits never change, and most requests meet the same few: by the first of them. */
const known = new WeakMap<Limit, Description>();

/** Limits of ancestors are named with the entity that has them, so that they are not kept. */
function describedBy(statuses: readonly LimitStatus[]): Description {
  const { entityId, limit } = statuses[0] as LimitStatus;
  const before = known.get(limit);
  if (before !== undefined && isAbout(before, statuses, entityId)) return before;
  const names = statuses.map((status) =>
    quoted(
      status.entityId === entityId ? status.limitName : `${status.entityId}/${status.limitName}`,
    ),
  );
  const limits = statuses.map((status) => status.limit);
  const description = {
    limits,
    policies: limits.map((each, at) => names[at] + parametersOf(each)).join(", "),
    names: names.map((name, at) => `${at === 0 ? "" : ", "}${name};r=`),
  };
  if (statuses.every((status) => status.entityId === entityId)) known.set(limit, description);
  return description;
}

function isAbout(
  { limits }: Description,
  statuses: readonly LimitStatus[],
  entityId: string,
): boolean {
  if (statuses.length !== limits.length) return false;
  for (let at = 0; at < limits.length; at += 1) {
    const status = statuses[at] as LimitStatus;
    if (status.limit !== limits[at] || status.entityId !== entityId) return false;
  }
  return true;
}

function parametersOf({ name, capacity, refillPeriodSeconds }: Limit): string {
  const unit = TOKENS_PATTERN.test(name) ? ';zae-unit="tokens"' : "";
  return `;q=${capacity};w=${refillPeriodSeconds}${unit}`;
}

/** Seconds until the requested amount fits, or until one token comes back; absent when never. */
function waitParameter(status: LimitStatus): string {
  const { available, exceeded, limit, retryAfterSeconds } = status;
  if (exceeded) {
    return Number.isFinite(retryAfterSeconds) ? `;t=${Math.ceil(retryAfterSeconds)}` : "";
  }
  if (available >= limit.capacity) return ";t=0";
  return `;t=${Math.ceil(limit.refillPeriodSeconds / limit.refillAmount)}`;
}

/** A bucket in debt has nothing left. */
function left({ available }: LimitStatus): number {
  return Math.max(0, available);
}

function windowOf({ limit }: LimitStatus): string {
  return `${limit.capacity};w=${limit.refillPeriodSeconds}`;
}

/** The limit with the smallest share left; the first of equals. */
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

/** A duration as OpenAI writes it: `120ms`, `6s`, `1m30s`, `2h0m5s`. */
function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${milliseconds}ms`;
  const seconds = Math.ceil(milliseconds / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = `${seconds % 60}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}

/** A string of a structured field. Names of limits and ids of entities are visible ASCII. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
