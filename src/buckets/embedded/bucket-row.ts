/** A bucket as text in one SQLite column: a short array, as every acquire writes it. */

import { DamagedRecordError } from "../../domain/errors.ts";
import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";

type Row = [
  version: number,
  source: EmbeddedBucket["source"],
  cascade: 0 | 1,
  parentId: string | null,
  limits: LimitRow[],
  usageHour: number,
  events: number,
];

type LimitRow = [
  name: string,
  capacityMilli: number,
  refillMilli: number,
  periodMs: number,
  tokensMilli: number,
  refilledAtMs: number,
  remainder: number,
  /** Text beyond 2^53. */
  consumedMilli: number | string,
  countedMilli: number | string,
];

export function encodeRow(bucket: EmbeddedBucket): string {
  const { link, version, source, limits, usageHour, events } = bucket;
  const row: Row = [
    version,
    source,
    link.cascade ? 1 : 0,
    link.parentId ?? null,
    limits.map(encodeLimit),
    usageHour,
    events,
  ];
  return JSON.stringify(row);
}

/** Throws a `DamagedRecordError` for a row that no version of this library has written. */
export function decodeRow(text: string, ttl: number | null, where: string): EmbeddedBucket {
  try {
    return decoded(text, ttl);
  } catch (cause) {
    throw new DamagedRecordError(where, "the row", "cannot be read", { cause });
  }
}

function decoded(text: string, ttl: number | null): EmbeddedBucket {
  const [version, source, cascade, parentId, limits, usageHour, events] = JSON.parse(text) as Row;
  if (![version, usageHour, events].every(Number.isSafeInteger)) throw new Error(text);
  return {
    link: { cascade: cascade === 1, parentId: parentId ?? undefined },
    version,
    source,
    ttl: ttl ?? undefined,
    limits: limits.map(decodeLimit),
    usageHour,
    events,
    stored: { ttl: ttl ?? undefined },
  };
}

function encodeLimit(limit: EmbeddedLimit): LimitRow {
  const { name, rate, level, consumedMilli, countedMilli } = limit;
  return [
    name,
    rate.capacityMilli,
    rate.refillMilli,
    rate.periodMs,
    level.tokensMilli,
    level.refilledAtMs,
    level.remainder,
    encodeTotal(consumedMilli),
    encodeTotal(countedMilli),
  ];
}

function decodeLimit(row: LimitRow): EmbeddedLimit {
  const [name, capacityMilli, refillMilli, periodMs, tokensMilli, refilledAtMs, remainder] = row;
  const [, , , , , , , consumedMilli, countedMilli] = row;
  const numbers = [capacityMilli, refillMilli, periodMs, tokensMilli, refilledAtMs, remainder];
  if (typeof name !== "string" || !numbers.every(Number.isSafeInteger)) {
    throw new Error(String(row));
  }
  return {
    name,
    rate: { capacityMilli, refillMilli, periodMs },
    level: { tokensMilli, refilledAtMs, remainder },
    consumedMilli: decodeTotal(consumedMilli),
    countedMilli: decodeTotal(countedMilli),
  };
}

function encodeTotal(total: number | bigint): number | string {
  return typeof total === "bigint" ? String(total) : total;
}

function decodeTotal(total: number | string): number | bigint {
  return typeof total === "string" ? BigInt(total) : total;
}
