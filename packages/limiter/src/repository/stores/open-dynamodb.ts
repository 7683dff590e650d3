/** Opens `dynamodb://<table>`. Loaded when a table is first opened. */

import { defined } from "../../base/defined.ts";
import { systemRandom } from "../../base/random.ts";
import { serverClock } from "../../base/time.ts";
import { DistributedBucketStore } from "../../buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "../../buckets/distributed/table-traits.ts";
import { DynamoItemStore } from "../../storage/dynamodb/item-store.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { DynamoOptions } from "../options.ts";
import { dynamodb, type TableLocation } from "./dynamodb.ts";

/** Opens a table, which has to be there. */
export async function openTable(location: TableLocation, options: DynamoOptions): Promise<Backend> {
  const shared = adapterOptions(options);
  const store = new DynamoItemStore({ ...connectionTo(location, options), ...shared });
  const { table } = location;
  return {
    name: table,
    database: { system: "aws.dynamodb", table },
    traits: dynamodb.traits,
    store,
    scannable: store,
    changes: { by: "shards", stream: store.stream() },
    // A clock that was passed in is an argument, not a machine's clock: it is never corrected.
    clock: options.clock === undefined ? serverClock(shared.clock, store) : shared.clock,
    random: systemRandom,
    countsUsage: true,
    openBuckets: (context, bucketOptions) =>
      new DistributedBucketStore(context, { ...bucketOptions, ...DYNAMODB_TRAITS }),
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
