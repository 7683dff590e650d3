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

/** Returns the headers of all styles; none where no limit may be shown. */
export function headersOf(styles: readonly HeaderStyle[], source: HeaderSource): Header[] {
  if (source.statuses.length === 0) return [];
  const headers: Header[] = [];
  for (const style of styles) WRITERS[style](source, headers);
  return headers;
}

/** Adds the headers of one style. */
type Writer = (source: HeaderSource, headers: Header[]) => void;

const WRITERS: Readonly<Record<HeaderStyle, Writer>> = {
  draft: ({ statuses }, headers) => {
    const own = statuses[0]?.entityId;
    let [policies, states] = ["", ""];
    for (const status of statuses) {
      const { entityId, limit, limitName } = status;
      const known = policyOf(limit);
      const name = entityId === own ? known.name : quoted(`${entityId}/${limitName}`);
      const comma = policies === "" ? "" : ", ";
      policies += `${comma}${name}${known.parameters}`;
      states += `${comma}${name};r=${left(status)}${waitParameter(status)}`;
    }
    headers.push(
      { name: "RateLimit-Policy", value: policies, isList: true },
      { name: "RateLimit", value: states, isList: true },
    );
  },
  "draft-7": ({ statuses }, headers) => {
    const scarcest = scarcestOf(statuses);
    const { capacity } = scarcest.limit;
    headers.push(
      { name: "RateLimit-Policy", value: windowOf(scarcest) },
      {
        name: "RateLimit",
        value: `limit=${capacity}, remaining=${left(scarcest)}, reset=${fullInSeconds(scarcest)}`,
      },
    );
  },
  "draft-6": ({ statuses }, headers) => {
    const scarcest = scarcestOf(statuses);
    headers.push(
      { name: "RateLimit-Policy", value: windowOf(scarcest) },
      { name: "RateLimit-Limit", value: String(scarcest.limit.capacity) },
      { name: "RateLimit-Remaining", value: String(left(scarcest)) },
      { name: "RateLimit-Reset", value: String(fullInSeconds(scarcest)) },
    );
  },
  legacy: ({ statuses, nowMs }, headers) => {
    const scarcest = scarcestOf(statuses);
    const resetAt = Math.ceil(nowMs / 1000) + fullInSeconds(scarcest);
    headers.push(
      { name: "X-RateLimit-Limit", value: String(scarcest.limit.capacity) },
      { name: "X-RateLimit-Remaining", value: String(left(scarcest)) },
      { name: "X-RateLimit-Reset", value: String(resetAt) },
    );
  },
  openai: ({ statuses }, headers) => {
    addOpenai(headers, statuses, "rpm", "requests");
    addOpenai(headers, statuses, "tpm", "tokens");
  },
};

function addOpenai(
  headers: Header[],
  statuses: readonly LimitStatus[],
  limitName: string,
  unit: "requests" | "tokens",
): void {
  const status = statuses.find((each) => each.limitName === limitName);
  if (status === undefined) return;
  headers.push(
    { name: `x-ratelimit-limit-${unit}`, value: String(status.limit.capacity) },
    { name: `x-ratelimit-remaining-${unit}`, value: String(left(status)) },
    { name: `x-ratelimit-reset-${unit}`, value: duration(fullInMs(status)) },
  );
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

function fullInMs({ available, limit }: LimitStatus): number {
  const missing = Math.max(0, limit.capacity - available);
  return Math.ceil((missing * limit.refillPeriodSeconds * 1000) / limit.refillAmount);
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
