/** One change of an item, as the aggregator sees it: whichever stream it came from. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ChangeRecord } from "@zae-limiter/limiter/storage/item-store.ts";

export interface StreamChange {
  /** Names the record when it has to be delivered again. */
  readonly id: string;
  /** Text that sorts as the changes of one item happened, across shards and streams. */
  readonly order: string;
  readonly key: { readonly PK: string; readonly SK: string };
  readonly before: Item | undefined;
  readonly after: Item | undefined;
  /** When the item changed. */
  readonly atMs: number;
}

/** Eight digits are good until the year 2059, nine for a long time after. */
const GENERATION_LENGTH = 9;
const LENGTH_DIGITS = 2;
const SEQUENCE_PATTERN = /^[0-9]*$/;

/** A store with one feed for all its life. */
export const ONLY_GENERATION = "";

/**
 * Returns a text by the time the stream was made, which sorts. A table that was restored, or whose
 * stream was switched off and on, has a new stream, whose sequence numbers need not continue the
 * old ones.
 */
export function generationOf(streamArn: string): string {
  const label = streamArn.slice(streamArn.lastIndexOf("/") + 1);
  const madeAtMs = Date.parse(label.endsWith("Z") ? label : `${label}Z`);
  if (Number.isNaN(madeAtMs)) return ONLY_GENERATION;
  return `${madeAtMs.toString(36).padStart(GENERATION_LENGTH, "0")}.`;
}

/** Numbers of different length do not sort as text, so their length goes first. */
export function orderOf(generation: string, sequence: string): string {
  const digits = SEQUENCE_PATTERN.test(sequence) ? sequence.replace(/^0+/, "") : sequence;
  return `${generation}${String(digits.length).padStart(LENGTH_DIGITS, "0")}${digits}`;
}

/** Returns a record of a store's own feed as a change. */
export function changeOf(record: ChangeRecord, generation: string): StreamChange {
  return {
    id: record.sequence,
    order: orderOf(generation, record.sequence),
    key: record.key,
    before: record.before,
    after: record.after,
    atMs: record.atMs,
  };
}
