/** A bucket as text in one column or attribute: a short array, as every acquire writes it. */

import type { Rate } from "../../core/bucket.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import type { LimitSource } from "../leg.ts";
import { Bucket, Build, numbersFor } from "./bucket.ts";
import { type Numbers, STRIDE } from "./limit-numbers.ts";

type Row = [
  version: number,
  source: LimitSource,
  cascade: 0 | 1,
  parentId: string | null,
  limits: LimitRow[],
  usageHour: number,
  events: number,
];

/** The numbers are those of `limit-numbers.ts`; a total beyond 2^53 is text. */
type LimitRow = [
  name: string,
  capacityMilli: number,
  refillMilli: number,
  periodMs: number,
  ...numbers: (number | string)[],
];

/** Returns the text of a row. Two texts of one bucket are the same to the byte. */
export function encodeRow({ build, link, usageHour, events, numbers }: Bucket): string {
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

/** Reads a row; throws `DamagedRecordError` for one that no version of this library has written. */
export function decodeRow(text: string, ttl: number | null, where: string): Bucket {
  try {
    return decoded(text, ttl);
  } catch (cause) {
    throw new DamagedRecordError(where, "the row", "cannot be read", { cause });
  }
}

function decoded(text: string, ttl: number | null): Bucket {
  const [version, source, cascade, parentId, limits, usageHour, events] = JSON.parse(text) as Row;
  if (![version, usageHour, events].every(Number.isSafeInteger)) throw new Error(text);
  const names = limits.map(([name]) => name);
  const rates = limits.map(([, capacityMilli, refillMilli, periodMs]) => ({
    capacityMilli,
    refillMilli,
    periodMs,
  }));
  const numbers = numbersFor(limits.length);
  limits.forEach((row, at) => {
    decodeLimit(row, numbers, at);
  });
  return new Bucket(
    new Build(version, source, names, rates),
    { cascade: cascade === 1, parentId: parentId ?? undefined },
    ttl ?? undefined,
    usageHour,
    events,
    numbers,
  );
}

function decodeLimit(row: LimitRow, numbers: Numbers, at: number): void {
  const [name, capacityMilli, refillMilli, periodMs, ...stored] = row;
  const whole = [capacityMilli, refillMilli, periodMs, ...stored.slice(0, STRIDE - 2)];
  const isWhole = whole.every(Number.isSafeInteger) && stored.length >= STRIDE;
  if (typeof name !== "string" || !isWhole) throw new Error(String(row));
  for (let offset = 0; offset < STRIDE; offset += 1) {
    const number = stored[offset] as number | string;
    numbers[at * STRIDE + offset] = typeof number === "string" ? BigInt(number) : number;
  }
}
