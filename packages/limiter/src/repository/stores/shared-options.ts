/** The options that every store has, and those of a store that no address names. */

import { checkInteger, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkOnUnavailable } from "../../domain/errors/unavailability.ts";
import type { OpenOptions } from "../options.ts";
import { checkUsageOptions } from "../usage-options.ts";
import type { OptionTable } from "./open-option.ts";

export const SHARED_OPTIONS = {
  namespace: { type: "string", doc: "the namespace" },
  configCacheTtlSeconds: {
    type: "number",
    check: (value: number) => checkNotNegative("configCacheTtlSeconds", value),
    default: 60,
    doc: "how long stored limits are cached; 0 turns the cache off",
  },
  bucketTtlMultiplier: {
    type: "number",
    check: (value: number) => checkNotNegative("bucketTtlMultiplier", value),
    default: 7,
    doc:
      "how long an idle bucket is kept, as a multiple of the time it takes to fill; 0 keeps it " +
      "without end",
  },
  onUnavailable: {
    type: "string",
    check: checkOnUnavailable,
    doc: "what acquires do while the store cannot answer",
  },
  timeoutMs: {
    type: "number",
    check: (value: number) => checkInteger("timeoutMs", value, 1, 3_600_000),
    default: 2000,
    doc: "when a store that does not answer counts as unavailable, retries included",
  },
  clock: { type: "function", doc: "epoch milliseconds, for tests and simulation" },
  random: { type: "function", doc: "numbers from 0 to below 1, for tests and simulation" },
  timer: { type: "object", doc: "deadlines and waiting, for simulation" },
  onCall: {
    type: "function",
    doc: "receives every request to the store, with its capacity units",
  },
} as const satisfies OptionTable<Omit<OpenOptions, "usage">>;

/** The options of `Repository.over` besides those of every store. */
export const CUSTOM_OPTIONS: OptionTable<Pick<OpenOptions, "usage">> = {
  usage: {
    type: "any",
    check: checkUsageOptions,
    doc: "as elsewhere for a table; without effect on an item store, where `runAggregator` counts",
  },
};

function checkNotNegative(name: string, value: number): void {
  if (Number.isFinite(value) && value >= 0) return;
  throw new ValidationError(name, value, `expected a number >= 0, got ${show(value)}`);
}
