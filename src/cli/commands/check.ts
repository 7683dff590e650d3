/** `stack check`: whether this client can use a store, for scripts. */

import { leaf } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { type StoreOptions, storePlace } from "../store-options.ts";
import {
  REPORT_SHAPE,
  reportJson,
  verdictOf,
  verdictText,
  versionReport,
} from "./version-report.ts";

const FINE: readonly string[] = ["compatible", "update_available"];

export const check = leaf<StoreOptions>({
  name: "check",
  summary: "checks whether this client can use a store",
  details: "Ends with 1 when it cannot, or when the store has no version record.",
  store: "read",
  namespaced: false,
  examples: ["stack check --name my-app", "stack check --url sqlite:limits.db"],
  json: REPORT_SHAPE,
  run: async ({ options, terminal }) => {
    const report = await versionReport(storePlace(options, terminal));
    return {
      json: () => reportJson(report),
      text: () => verdictText(report),
      code: FINE.includes(verdictOf(report)) ? EXIT.ok : EXIT.failed,
    };
  },
});
