/** The options that every store has, and those of a store that no address names. */

import { checkOnUnavailable } from "../../domain/errors/unavailability.ts";
import { FUNCTION, number, OBJECT, TEXT, whole } from "../../domain/options.ts";
import type { OpenOptions } from "../options.ts";
import { checkUsageOptions } from "../usage-options.ts";
import type { OpenOptionTable } from "./open-option.ts";

/** Any finite number that is not negative. */
const NOT_NEGATIVE = number(0, Number.MAX_VALUE);

export const SHARED_OPTIONS = {
  namespace: { check: TEXT, doc: "the namespace" },
  configCacheTtlSeconds: {
    check: NOT_NEGATIVE,
    default: 60,
    doc: "how long stored limits are cached; 0 turns the cache off",
  },
  bucketTtlMultiplier: {
    check: NOT_NEGATIVE,
    default: 7,
    doc:
      "how long an idle bucket is kept, as a multiple of the time it takes to fill; 0 keeps it " +
      "without end",
  },
  onUnavailable: {
    check: (_, value) => checkOnUnavailable(value),
    doc: "what acquires do while the store cannot answer",
  },
  timeoutMs: {
    check: whole(1, 3_600_000),
    default: 2000,
    doc: "when a store that does not answer counts as unavailable, retries included",
  },
  slotExpirySeconds: {
    check: number(1, 3600),
    doc:
      "how long a process keeps its slots without a sign of life; 15 on SQLite and 60 on a " +
      "server when absent",
  },
  clock: { check: FUNCTION, doc: "epoch milliseconds, for tests and simulation" },
  random: { check: FUNCTION, doc: "numbers from 0 to below 1, for tests and simulation" },
  timer: { check: OBJECT, doc: "deadlines and waiting, for simulation" },
  onCall: {
    check: FUNCTION,
    doc: "receives every request to the store, with its capacity units",
  },
} as const satisfies OpenOptionTable<Omit<OpenOptions, "usage">>;

/** The options of `Repository.over` besides those of every store. */
export const CUSTOM_OPTIONS: OpenOptionTable<Pick<OpenOptions, "usage">> = {
  usage: {
    check: checkUsageOptions,
    doc: "as elsewhere for a table; without effect on an item store, where `runAggregator` counts",
  },
};
