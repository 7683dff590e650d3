/** A row of a SQLite file as this process last saw it, and the consumes that wait to be written. */

import type { EmbeddedBucket } from "./embedded-bucket.ts";
import type { FastConsume } from "./fast-consume.ts";
import type { Build, PackedBucket } from "./packed-bucket.ts";

export class CachedRow {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: PackedBucket;
  /** The row in the file, unless another process has written it. */
  text: string;
  /** Consumes that are in `bucket` and not yet in `text`. */
  group: RowGroup | undefined = undefined;

  constructor(entityId: string, resource: string, bucket: PackedBucket, text: string) {
    this.entityId = entityId;
    this.resource = resource;
    this.bucket = bucket;
    this.text = text;
  }

  /** Takes over what the slow path has written. Consumes that wait are not in it any more. */
  replace(bucket: EmbeddedBucket, build: Build, text: string): void {
    if (this.group !== undefined) this.group.isVoid = true;
    this.group = undefined;
    this.bucket.replace(bucket, build);
    this.text = text;
  }
}

/** `undefined`: nothing was written, and the slow path decides the call. */
type Answer = (outcome: FastConsume | undefined) => void;

/** Consumes of one row that share its write, in the order in which they came. */
export class RowGroup {
  readonly row: CachedRow;
  /** What the file must hold for the consumes to be right. */
  readonly before: string;
  /** What is written; `undefined` where nothing was granted. */
  after: string | undefined = undefined;
  /** The slow path has replaced the bucket, so that the consumes must be decided again. */
  isVoid = false;
  readonly #outcomes: FastConsume[] = [];
  readonly #answers: Answer[] = [];

  constructor(row: CachedRow) {
    this.row = row;
    this.before = row.text;
  }

  add(outcome: FastConsume): Promise<FastConsume | undefined> {
    this.#outcomes.push(outcome);
    return new Promise((answer) => {
      this.#answers.push(answer);
    });
  }

  /** No more consumes join: the row is written as its bucket is now. */
  seal(): void {
    if (this.isVoid) return;
    const { row } = this;
    row.group = undefined;
    if (!this.#outcomes.some(({ granted }) => granted)) return;
    this.after = row.bucket.text();
    row.text = this.after;
  }

  answer(isWritten: boolean): void {
    for (let at = 0; at < this.#answers.length; at += 1) {
      (this.#answers[at] as Answer)(isWritten ? this.#outcomes[at] : undefined);
    }
  }
}
