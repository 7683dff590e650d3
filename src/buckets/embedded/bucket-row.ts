/** A bucket as the text of one SQLite column: an array, because it is written with every acquire. */

import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";

type Row = [
  version: number,
  source: EmbeddedBucket["source"],
  cascade: 0 | 1,
  parentId: string | null,
  limits: LimitRow[],
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
];

export function encodeRow(bucket: EmbeddedBucket): string {
  const { link, version, source, limits } = bucket;
  const row: Row = [
    version,
    source,
    link.cascade ? 1 : 0,
    link.parentId ?? null,
    limits.map(encodeLimit),
  ];
  return JSON.stringify(row);
}

export function decodeRow(text: string, ttl: number | null): EmbeddedBucket {
  const [version, source, cascade, parentId, limits] = JSON.parse(text) as Row;
  return {
    link: { cascade: cascade === 1, parentId: parentId ?? undefined },
    version,
    source,
    ttl: ttl ?? undefined,
    limits: limits.map(decodeLimit),
    stored: { ttl: ttl ?? undefined },
  };
}

function encodeLimit({ name, rate, level, consumedMilli }: EmbeddedLimit): LimitRow {
  return [
    name,
    rate.capacityMilli,
    rate.refillMilli,
    rate.periodMs,
    level.tokensMilli,
    level.refilledAtMs,
    level.remainder,
    typeof consumedMilli === "bigint" ? String(consumedMilli) : consumedMilli,
  ];
}

function decodeLimit(row: LimitRow): EmbeddedLimit {
  const [name, capacityMilli, refillMilli, periodMs, tokensMilli, refilledAtMs, remainder, total] =
    row;
  return {
    name,
    rate: { capacityMilli, refillMilli, periodMs },
    level: { tokensMilli, refilledAtMs, remainder },
    consumedMilli: typeof total === "string" ? BigInt(total) : total,
  };
}
