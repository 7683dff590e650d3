/** Opens a store that is an item table. Loaded when one is first opened. */

import { systemTimer } from "../../base/time.ts";
import { EmbeddedBucketStore } from "../../buckets/embedded/embedded-bucket-store.ts";
import { RunningStep, StepBuckets, stepSnapshots } from "../../buckets/embedded/step-buckets.ts";
import type { ItemTable } from "../../storage/item-table.ts";
import { OptimisticSteps } from "../../storage/optimistic-steps.ts";
import { StepItemStore } from "../../storage/step-item-store.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { countingParts, recordsIn, usageCounter } from "./embedded.ts";
import { DURABLE_USAGE } from "./usage-option.ts";

/** Puts the records and the buckets on a table: every call is a step. */
export function openItemTable(
  { name, database, traits }: Pick<Backend, "name" | "database" | "traits">,
  table: ItemTable,
  options: OpenOptions,
): Backend {
  const shared = adapterOptions(options);
  const { clock, random } = shared;
  const timer = options.timer ?? systemTimer;
  const steps = new OptimisticSteps(table, { ...shared, timer });
  const running = new RunningStep();
  const items = stepSnapshots(running);
  const countUsage = usageCounter(items, options.usage, DURABLE_USAGE, running);
  const store = new StepItemStore(steps);
  return {
    name,
    database,
    traits,
    ...countingParts(store, shared, options),
    scannable: undefined,
    openBuckets: ({ namespaceId }, bucketOptions) => {
      const records = recordsIn((key, along) => running.rows.get(key, along), namespaceId);
      const place = { steps, running, namespaceId, clock, items, countUsage };
      const buckets = new StepBuckets({ ...place, ...records });
      return new EmbeddedBucketStore(buckets, { clock, random, ...bucketOptions });
    },
  };
}
