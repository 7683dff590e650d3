/** The passes of a copy over rows of one kind: count them, bring the target up to them, compare. */

import { createHash } from "node:crypto";
import type { Part, RowKind, Side } from "./side.ts";

/** Rows that are compared and written together. */
const BATCH = 100;
/** Differences that a report names. */
const NAMED_MAX = 20;
const SUM_MODULUS = 2n ** 64n;

/** The number of rows of each kind. */
export type RowCounts = Record<RowKind, number>;

/** A row that is not the same on both sides. */
export interface CopyDifference {
  /** The kind of the row, as the report counts it. */
  readonly kind: RowKind;
  /** The key of the record, or the bucket. */
  readonly name: string;
  /** `missing` from the target, `different` there, or `extra` there. */
  readonly difference: "missing" | "different" | "extra";
}

/** The rows of the source that a pass has seen, and the differences it found. */
export interface PassResult {
  readonly counts: RowCounts;
  /** Equal for equal rows, in whichever order they were listed. */
  readonly digest: bigint;
  /** How many rows differed; written, where the pass writes. */
  readonly differing: number;
  /** The first of them. */
  readonly differences: readonly CopyDifference[];
}

export interface PassOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each batch with the number of rows in it. */
  readonly onRows: (count: number) => void;
}

const NO_ROWS: RowCounts = {
  entities: 0,
  limits: 0,
  usage: 0,
  audit: 0,
  others: 0,
  buckets: 0,
};

/** Counts the rows of the source, and reads nothing else. */
export async function survey<Row>(part: Part<Row>, options: PassOptions): Promise<PassResult> {
  const seen = new Seen(part);
  for await (const rows of batches(part.source, options)) {
    for (const row of rows) seen.add(row);
  }
  return seen.result();
}

/** Writes the rows that differ to the target, and removes those that the source does not have. */
export function bringUp<Row>(part: Part<Row>, options: PassOptions): Promise<PassResult> {
  return reconcile(part, options, part.target);
}

/** Compares both sides, and writes nothing. */
export function compare<Row>(part: Part<Row>, options: PassOptions): Promise<PassResult> {
  return reconcile(part, options, undefined);
}

async function reconcile<Row>(
  part: Part<Row>,
  options: PassOptions,
  written: Side<Row> | undefined,
): Promise<PassResult> {
  const { source, target } = part;
  const seen = new Seen(part);
  for await (const rows of batches(source, options)) {
    const found = await target.find(rows);
    const changed = rows.filter((row, at) => {
      seen.add(row);
      const other = found[at];
      if (other !== undefined && part.areAlike(row, other)) return false;
      seen.differs(row, other === undefined ? "missing" : "different");
      return true;
    });
    if (changed.length > 0) await written?.put(changed);
  }
  for await (const rows of batches(target, { ...options, onRows: () => undefined })) {
    const candidates = rows.filter((row) => !part.stays(row));
    const found = await source.find(candidates);
    const extra = candidates.filter((_, at) => found[at] === undefined);
    for (const row of extra) seen.differs(row, "extra");
    if (extra.length > 0) await written?.remove(extra);
  }
  return seen.result();
}

/** Collects what a pass sees. */
class Seen<Row> {
  readonly #part: Part<Row>;
  readonly #counts: RowCounts = { ...NO_ROWS };
  readonly #differences: CopyDifference[] = [];
  #digest = 0n;
  #differing = 0;

  constructor(part: Part<Row>) {
    this.#part = part;
  }

  add(row: Row): void {
    this.#counts[this.#part.kindOf(row)] += 1;
    const text = JSON.stringify(this.#part.contentOf(row), inOrder);
    const hash = createHash("sha256").update(text).digest();
    this.#digest = (this.#digest + hash.readBigUInt64LE()) % SUM_MODULUS;
  }

  differs(row: Row, difference: CopyDifference["difference"]): void {
    this.#differing += 1;
    if (this.#differences.length === NAMED_MAX) return;
    const { kindOf, nameOf } = this.#part;
    this.#differences.push({ kind: kindOf(row), name: nameOf(row), difference });
  }

  result(): PassResult {
    const digest = this.#digest;
    return {
      counts: this.#counts,
      digest,
      differing: this.#differing,
      differences: this.#differences,
    };
  }
}

/** Makes equal values the same text: stores return the members of an object in any order. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries);
}

/** Lists a side in batches, until the copy is interrupted. */
async function* batches<Row>(
  side: Side<Row>,
  { signal, onRows }: PassOptions,
): AsyncGenerator<readonly Row[]> {
  let batch: Row[] = [];
  const full = () => {
    signal?.throwIfAborted();
    const rows = batch;
    batch = [];
    return rows;
  };
  for await (const row of side.list()) {
    batch.push(row);
    if (batch.length < BATCH) continue;
    const rows = full();
    yield rows;
    onRows(rows.length);
  }
  const rows = full();
  if (rows.length === 0) return;
  yield rows;
  onRows(rows.length);
}
