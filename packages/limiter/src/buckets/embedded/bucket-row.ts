/** A bucket as text in one SQLite column: a short array, as every acquire writes it. */

import type { Rate } from "../../core/bucket.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import type { EmbeddedBucket, EmbeddedLimit } from "./embedded-bucket.ts";
import type { Build } from "./packed-bucket.ts";

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

/** A bucket as a row needs it; the totals of each limit stand one after the other. */
interface RowParts {
  readonly build: Pick<Build, "version" | "source" | "names" | "rates">;
  readonly link: EmbeddedBucket["link"];
  readonly usageHour: number;
  readonly events: number;
}

/** How many numbers a limit has: tokens, refill time, remainder, consumed and counted. */
export const STRIDE = 5;

/** The only place that writes a row: two texts of one bucket must be the same to the byte. */
export function rowText(
  { build, link, usageHour, events }: RowParts,
  numbers: readonly (number | bigint)[],
): string {
  const { version, source, names, rates } = build;
  const parent = link.parentId === undefined ? "null" : JSON.stringify(link.parentId);
  let text = `[${version},"${source}",${link.cascade ? 1 : 0},${parent},[`;
  for (let at = 0; at < names.length; at += 1) {
    const { capacityMilli, refillMilli, periodMs } = rates[at] as Rate;
    text += `${at === 0 ? "" : ","}["${names[at]}",${capacityMilli},${refillMilli},${periodMs}`;
    for (let place = at * STRIDE; place < (at + 1) * STRIDE; place += 1) {
      const number = numbers[place] as number | bigint;
      text += typeof number === "bigint" ? `,"${number}"` : `,${number}`;
    }
    text += "]";
  }
  return `${text}],${usageHour},${events}]`;
}

export function encodeRow({ link, version, source, limits, usageHour, events }: EmbeddedBucket) {
  const names = limits.map(({ name }) => name);
  const rates = limits.map(({ rate }) => rate);
  const numbers = limits.flatMap(({ level, consumedMilli, countedMilli }) => [
    level.tokensMilli,
    level.refilledAtMs,
    level.remainder,
    consumedMilli,
    countedMilli,
  ]);
  return rowText({ build: { version, source, names, rates }, link, usageHour, events }, numbers);
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

function decodeTotal(total: number | string): number | bigint {
  return typeof total === "string" ? BigInt(total) : total;
}
