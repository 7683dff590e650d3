/** Answers of DynamoDB about a table with a given version record. */

import type { Answer } from "./aws-server.ts";

/** Returns the answers. `PK` is that of the registry, or one outside of every namespace. */
export function versionAnswers(
  table: string,
  said: Readonly<Record<string, string>>,
  PK = "_/SYSTEM#",
): Record<string, Answer | readonly Answer[]> {
  const texts = { PK, SK: "#VERSION", client_min_version: "0.0.0", ...said };
  const Item = Object.fromEntries(Object.entries(texts).map(([name, S]) => [name, { S }]));
  const nothing = { body: "{}" };
  const isRegistered = PK !== "SYSTEM#";
  return {
    // The record in the registry is asked for first; then, that no migration is under way.
    GetItem: [isRegistered ? { body: JSON.stringify({ Item }) } : nothing, nothing],
    BatchGetItem: { body: JSON.stringify({ Responses: { [table]: [Item] }, UnprocessedKeys: {} }) },
  };
}
