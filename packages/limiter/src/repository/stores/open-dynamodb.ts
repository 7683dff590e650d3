/** Opens `dynamodb://<table>`. Loaded when a table is first opened. */

import { defined } from "../../base/defined.ts";
import { systemRandom } from "../../base/random.ts";
import { serverClock, systemTimer } from "../../base/time.ts";
import { DistributedBucketStore } from "../../buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "../../buckets/distributed/table-traits.ts";
import { holderTimes, REMOTE_HOLDERS, SlotHolder } from "../../buckets/slots/slot-holder.ts";
import { HolderRecords } from "../../records/holders.ts";
import { DynamoItemStore } from "../../storage/dynamodb/item-store.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { DynamoOptions } from "../options.ts";
import { dynamodb, type TableLocation } from "./dynamodb.ts";

/** Opens a table, which has to be there. */
export async function openTable(location: TableLocation, options: DynamoOptions): Promise<Backend> {
  const shared = adapterOptions(options);
  const store = new DynamoItemStore({ ...connectionTo(location, options), ...shared });
  const { table } = location;
  // A clock that was passed in is an argument, not a machine's clock: it is never corrected.
  const clock = options.clock === undefined ? serverClock(shared.clock, store) : shared.clock;
  const records = new HolderRecords(store);
  const holder = new SlotHolder({
    // A role that acquires deletes nothing: the record of a process that has ended expires.
    records: { write: (...call) => records.write(...call), remove: async () => {} },
    clock,
    timer: options.timer ?? systemTimer,
    random: options.random ?? systemRandom,
    times: holderTimes(REMOTE_HOLDERS, options.slotExpirySeconds),
  });
  return {
    name: table,
    database: { system: "aws.dynamodb", table },
    traits: dynamodb.traits,
    store,
    scannable: store,
    changes: { by: "shards", stream: store.stream() },
    clock,
    random: systemRandom,
    countsUsage: true,
    openBuckets: (context, bucketOptions) =>
      new DistributedBucketStore(context, { ...bucketOptions, ...DYNAMODB_TRAITS, holder }),
  };
}

/** Returns how the table is reached: options beat the address. */
export function connectionTo(location: TableLocation, options: DynamoOptions) {
  const region = options.region ?? location.region;
  const endpoint = options.endpoint ?? location.endpoint;
  const { credentials, requestHandler, maxAttempts, transport } = options;
  const { table } = location;
  return defined({ table, region, endpoint, credentials, requestHandler, maxAttempts, transport });
}
