/** Parameters and columns of statements: all are texts, which every client sends alike. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import type { TableCallOptions } from "../item-table.ts";
import type { PostgresRow } from "./connection.ts";

/** The part of a call's time that the server may wait for locks; the rest is for the answer. */
const LOCK_SHARE = 0.8;

/** Returns the text of an array of texts. */
export function arrayText(texts: readonly (string | undefined)[]): string {
  const elements = texts.map((text) =>
    text === undefined ? "null" : `"${text.replace(/["\\]/g, "\\$&")}"`,
  );
  return `{${elements.join(",")}}`;
}

/** Returns how long the server may wait for a lock. */
export function lockMs({ timeoutMs }: TableCallOptions): string {
  return String(Math.max(1, Math.floor(timeoutMs * LOCK_SHARE)));
}

/** Returns a column that is never null. */
export function textAt(row: PostgresRow | undefined, name: string): string {
  const value = row?.[name];
  if (typeof value === "string") return value;
  throw new InfrastructureError(`The client of PostgreSQL returned no text for ${name}`);
}
