/** How the schema came to its present shape: one step per version, never edited afterwards. */

import { commitFunction } from "./commit-function.ts";
import { firstTables } from "./first-tables.ts";
import { adjustFunction, consumeFunction, slotsFunction } from "./warm-functions.ts";

export interface Migration {
  /** The version of the schema after it. */
  readonly version: number;
  readonly reason: string;
  /** The oldest version of clients that can still work with the schema after it. */
  readonly clientMin: number;
  /** Returns its statements; `schema` is the name in quotes. */
  sql(schema: string): string;
}

/**
 * Functions carry a number: a migration adds `consume_2` and leaves `consume_1` to processes that
 * run an older release, until a later one drops it and raises `clientMin`.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    reason: "items, the log, tokens; commits and warm calls",
    clientMin: 1,
    sql: (schema) =>
      [firstTables, commitFunction, slotsFunction, consumeFunction, adjustFunction]
        .map((part) => part(schema))
        .join("\n"),
  },
];

/** The version of the schema that this release works with. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.version ?? 0;
