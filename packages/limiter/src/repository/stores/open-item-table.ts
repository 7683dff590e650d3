/** Opens a table of the caller's. Loaded when one is first opened. */

import { systemTimer } from "../../base/timer.ts";
import { EmbeddedBucketStore } from "../../buckets/embedded/embedded-bucket-store.ts";
import { RunningStep, StepBuckets, stepSnapshots } from "../../buckets/embedded/step-buckets.ts";
import type { ItemTable } from "../../storage/item-table.ts";
import { OptimisticSteps } from "../../storage/optimistic-steps.ts";
import { StepItemStore } from "../../storage/step-item-store.ts";
import { adapterOptions, type Backend, capabilitiesOf, type StoreTraits } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { recordsIn, usageCounter } from "./embedded.ts";

const USAGE = { retentionDays: 90, maxEntities: 10_000 } as const;

/** Any number of processes may use the table. */
const TRAITS: StoreTraits = { isShared: true, createsItself: true, writesPerPartition: undefined };

/** Puts the records and the buckets on a table: every call is a step. */
export function openItemTable(name: string, table: ItemTable, options: OpenOptions): Backend {
  const shared = adapterOptions(options);
  const { clock, random } = shared;
  const timer = options.timer ?? systemTimer;
  const steps = new OptimisticSteps(table, { ...shared, timer });
  const running = new RunningStep();
  const items = stepSnapshots(running);
  const countUsage = usageCounter(items, options.usage, USAGE);
  const store = new StepItemStore(steps);
  return {
    name,
    database: { system: name },
    traits: TRAITS,
    store,
    scannable: undefined,
    changes: { by: "feed", store },
    clock,
    random,
    capabilities: capabilitiesOf({
      supportsUsageSnapshots: options.usage !== false,
      supportsInfrastructureManagement: false,
    }),
    openBuckets: ({ namespaceId }, bucketOptions) => {
      const records = recordsIn((key, along) => running.rows.get(key, along), namespaceId);
      const place = { steps, running, namespaceId, clock, items, countUsage };
      const buckets = new StepBuckets({ ...place, ...records });
      return new EmbeddedBucketStore(buckets, { clock, random, ...bucketOptions });
    },
  };
}
