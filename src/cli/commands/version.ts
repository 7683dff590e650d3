/** `version`: the versions of the client, the table and the Lambda. */

import { CLIENT_VERSION, SCHEMA_VERSION } from "../../domain/version.ts";
import { leaf } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { fields } from "../fields.ts";
import { STACK_OPTIONS } from "../store-options.ts";
import { type StackPlaceOptions, stackPlace } from "./deploy-place.ts";
import {
  lambdaOf,
  REPORT_SHAPE,
  reportJson,
  verdictOf,
  verdictText,
  versionReport,
} from "./version-report.ts";

export const version = leaf<StackPlaceOptions>({
  name: "version",
  summary: "shows the versions of client, table and Lambda",
  options: STACK_OPTIONS,
  examples: ["version --name my-app"],
  json: REPORT_SHAPE,
  run: async ({ options, terminal }) => {
    const place = stackPlace(options, terminal);
    const report = await versionReport(place);
    const rows: [string, string][] = [
      ["Client", CLIENT_VERSION],
      ["Schema of the client", SCHEMA_VERSION],
      ...(report.record === undefined
        ? []
        : ([
            ["Schema of the table", report.record.schemaVersion],
            ["Lambda", lambdaOf(report.record) ?? "unknown"],
            ["Oldest client", report.record.clientMinVersion],
          ] as [string, string][])),
    ];
    return {
      json: () => reportJson(report),
      text: () =>
        `${fields(rows, terminal.palette.faint)}\n\n${verdictText(report, place.stackName)}`,
      code: verdictOf(report) === "incompatible" ? EXIT.failed : EXIT.ok,
    };
  },
});
