/**
 * Response headers that tell a client what is left, in the style of the newest IETF draft
 * (draft-ietf-httpapi-ratelimit-headers-10), of its older versions, and of two vendors.
 */

import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";

/** `draft` is the newest IETF draft; `legacy` are the `X-RateLimit-*` headers. */
export type HeaderStyle = "draft" | "draft-7" | "draft-6" | "legacy" | "openai";

export const HEADER_STYLES: readonly HeaderStyle[] = [
  "draft",
  "draft-7",
  "draft-6",
  "legacy",
  "openai",
];

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
  /** Epoch milliseconds. */
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
export function headersOf(styles: readonly HeaderStyle[], source: HeaderSource): Header[] {
  const headers: Header[] = [];
  addHeaders(styles, source, (name, value, isList) => {
    headers.push(isList === undefined ? { name, value } : { name, value, isList });
  });
  return headers;
}

/** Takes a header. */
export type AddHeader = (name: string, value: string, isList?: true) => void;

/** Adds the headers of all styles; none where no limit may be shown. */
export function addHeaders(
  styles: readonly HeaderStyle[],
  source: HeaderSource,
  add: AddHeader,
): void {
  if (source.statuses.length === 0) return;
  for (const style of styles) WRITERS[style](source, add);
}

/** Adds the headers of one style. */
type Writer = (source: HeaderSource, add: AddHeader) => void;

const WRITERS: Readonly<Record<HeaderStyle, Writer>> = {
  draft: ({ statuses }, add) => {
    const own = statuses[0]?.entityId;
    let states = "";
    for (const status of statuses) {
      const comma = states === "" ? "" : ", ";
      states += `${comma}${nameOf(status, own)};r=${left(status)}${waitParameter(status)}`;
    }
    add("RateLimit-Policy", policiesOf(statuses), true);
    add("RateLimit", states, true);
  },
  "draft-7": ({ statuses }, add) => {
    const scarcest = scarcestOf(statuses);
    const { capacity } = scarcest.limit;
    const state = `remaining=${left(scarcest)}, reset=${fullInSeconds(scarcest)}`;
    add("RateLimit-Policy", windowOf(scarcest));
    add("RateLimit", `limit=${capacity}, ${state}`);
  },
  "draft-6": ({ statuses }, add) => {
    const scarcest = scarcestOf(statuses);
    add("RateLimit-Policy", windowOf(scarcest));
    add("RateLimit-Limit", String(scarcest.limit.capacity));
    add("RateLimit-Remaining", String(left(scarcest)));
    add("RateLimit-Reset", String(fullInSeconds(scarcest)));
  },
  legacy: ({ statuses, nowMs }, add) => {
    const scarcest = scarcestOf(statuses);
    const resetAt = Math.ceil(nowMs / 1000) + fullInSeconds(scarcest);
    add("X-RateLimit-Limit", String(scarcest.limit.capacity));
    add("X-RateLimit-Remaining", String(left(scarcest)));
    add("X-RateLimit-Reset", String(resetAt));
  },
  openai: ({ statuses }, add) => {
    addOpenai(add, statuses, "rpm", OPENAI_REQUESTS);
    addOpenai(add, statuses, "tpm", OPENAI_TOKENS);
  },
};

/** The names of the headers of OpenAI: the limit, what remains, when it is full again. */
type OpenaiNames = readonly [string, string, string];

const OPENAI_REQUESTS: OpenaiNames = [
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
];
const OPENAI_TOKENS: OpenaiNames = [
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-tokens",
];

function addOpenai(
  add: AddHeader,
  statuses: readonly LimitStatus[],
  limitName: string,
  [limit, remaining, reset]: OpenaiNames,
): void {
  for (const status of statuses) {
    if (status.limitName !== limitName) continue;
    add(limit, String(status.limit.capacity));
    add(remaining, String(left(status)));
    add(reset, duration(fullInMs(status)));
    return;
  }
}

/** Limits that count tokens, by the names that are common for them. */
const TOKENS_PATTERN = /^[io]?tp[smhd]$|token/i;

/** What the headers say of a limit itself. */
interface Policy {
  readonly name: string;
  readonly parameters: string;
}

/** Limits never change, and most requests meet the same few. */
const policies = new WeakMap<Limit, Policy>();

function policyOf(limit: Limit): Policy {
  const known = policies.get(limit);
  if (known !== undefined) return known;
  const { name, capacity, refillPeriodSeconds } = limit;
  const unit = TOKENS_PATTERN.test(name) ? ';zae-unit="tokens"' : "";
  const parameters = `;q=${capacity};w=${refillPeriodSeconds}${unit}`;
  const policy = { name: quoted(name), parameters };
  policies.set(limit, policy);
  return policy;
}

/** Limits of ancestors are named with the entity that has them. */
function nameOf({ entityId, limit, limitName }: LimitStatus, own: string | undefined): string {
  return entityId === own ? policyOf(limit).name : quoted(`${entityId}/${limitName}`);
}

/** The policies of some limits of one entity, by the first of them. */
const knownPolicies = new WeakMap<Limit, { limits: readonly Limit[]; text: string }>();

function policiesOf(statuses: readonly LimitStatus[]): string {
  const [first] = statuses;
  if (first === undefined) return "";
  const known = knownPolicies.get(first.limit);
  const isOwn = statuses.every(({ entityId }) => entityId === first.entityId);
  if (isOwn && known !== undefined && areLimitsOf(statuses, known.limits)) return known.text;
  const text = statuses
    .map((status) => nameOf(status, first.entityId) + policyOf(status.limit).parameters)
    .join(", ");
  const limits = statuses.map(({ limit }) => limit);
  if (isOwn) knownPolicies.set(first.limit, { limits, text });
  return text;
}

function areLimitsOf(statuses: readonly LimitStatus[], limits: readonly Limit[]): boolean {
  if (statuses.length !== limits.length) return false;
  return statuses.every(({ limit }, at) => limit === limits[at]);
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
