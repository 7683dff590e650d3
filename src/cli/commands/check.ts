/** `check`: whether this client and a table fit, for scripts. */

import { leaf } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { STACK_OPTIONS } from "../store-options.ts";
import { type StackPlaceOptions, stackPlace } from "./deploy-place.ts";
import {
  REPORT_SHAPE,
  reportJson,
  verdictOf,
  verdictText,
  versionReport,
} from "./version-report.ts";

const FINE: readonly string[] = ["compatible", "update_available"];

export const check = leaf<StackPlaceOptions>({
  name: "check",
  summary: "says whether this client and a table fit",
  details: "Ends with 1 when they do not, or when the table says nothing about itself.",
  options: STACK_OPTIONS,
  examples: ["check --name my-app"],
  json: REPORT_SHAPE,
  run: async ({ options, terminal }) => {
    const place = stackPlace(options, terminal);
    const report = await versionReport(place);
    return {
      json: () => reportJson(report),
      text: () => verdictText(report, place.stackName),
      code: FINE.includes(verdictOf(report)) ? EXIT.ok : EXIT.failed,
    };
  },
});
