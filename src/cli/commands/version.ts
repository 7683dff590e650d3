/** `stack version`: the versions of the client, the store and the Lambda. */

import { CLIENT_VERSION, SCHEMA_VERSION } from "../../domain/version.ts";
import { leaf } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { fields } from "../fields.ts";
import { placeName, type StoreOptions, storePlace } from "../store-options.ts";
import {
  lambdaOf,
  REPORT_SHAPE,
  reportJson,
  type VersionReport,
  verdictOf,
  verdictText,
  versionReport,
} from "./version-report.ts";

export const version = leaf<StoreOptions>({
  name: "version",
  summary: "shows the versions of client, store and Lambda",
  store: "read",
  namespaced: false,
  examples: ["stack version --name my-app", "stack version --url sqlite:limits.db"],
  json: REPORT_SHAPE,
  run: async ({ options, terminal }) => {
    const report = await versionReport(storePlace(options, terminal));
    return {
      json: () => reportJson(report),
      text: () => `${fields(rowsOf(report), terminal.palette.faint)}\n\n${verdictText(report)}`,
      code: verdictOf(report) === "incompatible" ? EXIT.failed : EXIT.ok,
    };
  },
});

function rowsOf({ location, record }: VersionReport): [string, string][] {
  const rows: [string, string][] = [
    ["Store", placeName(location)],
    ["Client", CLIENT_VERSION],
    ["Schema of the client", SCHEMA_VERSION],
  ];
  if (record === undefined) return rows;
  rows.push(["Schema of the store", record.schemaVersion]);
  // Embedded stores count usage themselves.
  if (location.kind === "dynamodb") rows.push(["Lambda", lambdaOf(record) ?? "unknown"]);
  rows.push(["Oldest client", record.clientMinVersion]);
  return rows;
}
