/** `stack version`: the versions of the client, the store and the Lambda. */

import { CLIENT_VERSION, SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { placeName } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { fields } from "../../frame/fields.ts";
import {
  lambdaOf,
  type VersionReport,
  verdictOf,
  verdictText,
  versionLeaf,
} from "./version-report.ts";

export const version = versionLeaf(
  { name: "version", summary: "shows the versions of client, store and Lambda" },
  (report, { palette }) => ({
    text: `${fields(rowsOf(report), palette.faint)}\n\n${verdictText(report)}`,
    code: verdictOf(report) === "incompatible" ? EXIT.failed : EXIT.ok,
  }),
);

function rowsOf({ location, record }: VersionReport): [string, string][] {
  const rows: [string, string][] = [
    ["Store", placeName(location)],
    ["Client", CLIENT_VERSION],
    ["Schema of the client", SCHEMA_VERSION],
  ];
  if (record === undefined) return rows;
  rows.push(["Schema of the store", record.schemaVersion]);
  // Embedded stores count usage themselves.
  if (tableOf(location) !== undefined) rows.push(["Lambda", lambdaOf(record) ?? "unknown"]);
  rows.push(["Oldest Python client", record.clientMinVersion]);
  return rows;
}
