/** The rows of one kind on one side of a copy, in a form that is the same on both sides. */

/** Rows of a namespace in one store. */
export interface Side<Row> {
  /** Lists all rows that have not expired. */
  list(): AsyncIterable<Row>;
  /** Returns the rows of this side with the names of some rows; `undefined` where there is none. */
  find(rows: readonly Row[]): Promise<(Row | undefined)[]>;
  /** Writes rows, whatever is there. */
  put(rows: readonly Row[]): Promise<void>;
  remove(rows: readonly Row[]): Promise<void>;
}

/** Kinds of rows, as a report counts them. */
export type RowKind = "entities" | "limits" | "usage" | "audit" | "others" | "buckets";

/** Rows on both sides. */
export interface Part<Row> {
  readonly source: Side<Row>;
  readonly target: Side<Row>;
  /** Whether a row needs no writing. */
  areAlike(row: Row, other: Row): boolean;
  kindOf(row: Row): RowKind;
  /** Names a row for a report. */
  nameOf(row: Row): string;
  /** Returns a value for JSON that changes with the row. */
  contentOf(row: Row): object;
  /** Whether a row of the target stays although the source does not have it. */
  stays(row: Row): boolean;
}
