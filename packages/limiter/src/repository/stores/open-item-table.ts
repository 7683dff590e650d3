/** Opens a store that is an item table. Loaded when one is first opened. */

import { serverClock, systemTimer } from "../../base/time.ts";
import { EmbeddedBucketStore } from "../../buckets/embedded/embedded-bucket-store.ts";
import { holderAmong } from "../../buckets/embedded/slot-sources.ts";
import { RunningStep, StepBuckets, stepSnapshots } from "../../buckets/embedded/step-buckets.ts";
import { RemoteBucketStore } from "../../buckets/remote/remote-bucket-store.ts";
import { holderTimes, REMOTE_HOLDERS, SlotHolder } from "../../buckets/slots/slot-holder.ts";
import { HolderRecords } from "../../records/holders.ts";
import type { ItemTable } from "../../storage/item-table.ts";
import { OptimisticSteps } from "../../storage/optimistic-steps.ts";
import { StepItemStore } from "../../storage/step-item-store.ts";
import { type WarmBuckets, warmBucketsOf } from "../../storage/warm-buckets.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { countingParts, recordsIn, usageCounter } from "./embedded.ts";
import { DURABLE_USAGE } from "./usage-option.ts";

/** The difference of clocks that the way to the server may explain: its date has milliseconds. */
const LATENCY_MS = 100;

/**
 * Puts the records and the buckets on a table: every call is a step, unless the server decides warm
 * calls by itself.
 */
export function openItemTable(
  { name, database, traits }: Pick<Backend, "name" | "database" | "traits">,
  table: ItemTable,
  options: OpenOptions,
): Backend {
  const warm = warmBucketsOf(table);
  const given = adapterOptions(options);
  const { clock: local, random } = given;
  const clock = warm === undefined || options.clock ? local : serverClock(local, warm, LATENCY_MS);
  const shared = { ...given, clock };
  const timer = options.timer ?? systemTimer;
  const steps = new OptimisticSteps(table, { ...shared, timer });
  const running = new RunningStep();
  const items = stepSnapshots(running);
  const countUsage = usageCounter(items, options.usage, DURABLE_USAGE, running);
  const store = new StepItemStore(steps);
  const holder = new SlotHolder({
    ...{ clock, timer, random },
    records: new HolderRecords(store),
    times: holderTimes(REMOTE_HOLDERS, options.slotExpirySeconds),
  });
  const slots = holderAmong(holder, undefined);
  return {
    name,
    database,
    traits,
    ...countingParts(store, shared, options),
    scannable: undefined,
    openBuckets: ({ namespaceId }, bucketOptions) => {
      const { recordKeys, ...records } = recordsIn(
        (key, along) => running.rows.get(key, along),
        namespaceId,
      );
      const place = { steps, running, namespaceId, clock, items, countUsage };
      // With warm calls most steps are for a bucket that is not there yet.
      const ofWarm = warm && { recordKeys, warmTtlMultiplier: bucketOptions.ttlMultiplier };
      const buckets = new StepBuckets({ ...place, ...records, ...ofWarm });
      holder.onLost(bucketOptions.onWarning);
      const embedded = new EmbeddedBucketStore(buckets, { clock, random, slots, ...bucketOptions });
      if (warm === undefined) return embedded;
      return new RemoteBucketStore({
        namespaceId,
        steps: embedded,
        warm: sentBy(steps, warm),
        keyOf: (bucket) => buckets.keyOf(bucket),
        clock,
        nowMs: options.clock && clock,
        random,
        ...bucketOptions,
      });
    },
  };
}

/** Returns warm calls that listeners get, and that closing waits for, like all requests. */
function sentBy(steps: OptimisticSteps, warm: WarmBuckets): WarmBuckets {
  return {
    serverDateSkewMs: undefined,
    consume: (call, options) => steps.send("consume", options, (sent) => warm.consume(call, sent)),
    adjust: (call, options) => steps.send("adjust", options, (sent) => warm.adjust(call, sent)),
    hold: (hold, options) => steps.send("hold", options, (sent) => warm.hold(hold, sent)),
  };
}
