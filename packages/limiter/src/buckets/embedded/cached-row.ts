/** A row of a SQLite file as this process last saw it, and the changes that wait to be written. */

import type { EmbeddedBucket } from "./embedded-bucket.ts";
import type { Build, PackedBucket } from "./packed-bucket.ts";

export class CachedRow {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: PackedBucket;
  /** The row in the file, unless another process has written it. */
  text: string;
  /** Changes that are in `bucket` and not yet in `text`. */
  group: RowGroup | undefined = undefined;

  constructor(entityId: string, resource: string, bucket: PackedBucket, text: string) {
    this.entityId = entityId;
    this.resource = resource;
    this.bucket = bucket;
    this.text = text;
  }

  /** Takes over what the slow path has written. Changes that wait are not in it any more. */
  replace(bucket: EmbeddedBucket, build: Build, text: string): void {
    if (this.group !== undefined) this.group.isVoid = true;
    this.group = undefined;
    this.bucket.replace(bucket, build);
    this.text = text;
  }
}

/** A consume, or an adjustment, which is always granted. */
export interface Decided {
  readonly granted: boolean;
}

/** Changes of one row that share its write, in the order in which they came. */
export class RowGroup {
  readonly row: CachedRow;
  /** What the file must hold for the changes to be right. */
  readonly before: string;
  /** What is written; `undefined` where nothing was granted. */
  after: string | undefined = undefined;
  /** The slow path has replaced the bucket, so that the changes must be decided again. */
  isVoid = false;
  #isChanged = false;
  readonly #answers: ((isWritten: boolean) => void)[] = [];

  constructor(row: CachedRow) {
    this.row = row;
    this.before = row.text;
  }

  /** Resolves with `undefined` where nothing was written, and the slow path decides the call. */
  add<Outcome extends Decided>(outcome: Outcome): Promise<Outcome | undefined> {
    if (outcome.granted) this.#isChanged = true;
    return new Promise((resolve) => {
      this.#answers.push((isWritten) => resolve(isWritten ? outcome : undefined));
    });
  }

  /** No more changes join: the row is written as its bucket is now. */
  seal(): void {
    if (this.isVoid) return;
    const { row } = this;
    row.group = undefined;
    if (!this.#isChanged) return;
    this.after = row.bucket.text();
    row.text = this.after;
  }

  answer(isWritten: boolean): void {
    for (const answer of this.#answers) answer(isWritten);
  }
}
