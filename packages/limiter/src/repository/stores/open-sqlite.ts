/** Opens `sqlite:<file>`. Loaded when a file is first opened. */

import { ownProcess } from "../../base/process-mark.ts";
import { systemTimer } from "../../base/time.ts";
import { EmbeddedBucketStore } from "../../buckets/embedded/embedded-bucket-store.ts";
import { holderAmong } from "../../buckets/embedded/slot-sources.ts";
import { SqliteBucketTable } from "../../buckets/embedded/sqlite-table.ts";
import { holderTimes, LOCAL_HOLDERS, SlotHolder } from "../../buckets/slots/slot-holder.ts";
import { HolderRecords } from "../../records/holders.ts";
import { openSqlite } from "../../storage/sqlite/connection.ts";
import { Housekeeping } from "../../storage/sqlite/housekeeping.ts";
import { ItemRows } from "../../storage/sqlite/item-rows.ts";
import { adapterOptions, type Backend } from "../backend.ts";
import type { OpenOptions } from "../options.ts";
import { countingParts, recordsIn, usageCounter } from "./embedded.ts";
import { sqliteSnapshots } from "./snapshot-items.ts";
import { type FileLocation, sqlite } from "./sqlite.ts";
import { DURABLE_USAGE } from "./usage-option.ts";

/** Opens the store in a file, which is created when it is not there. */
export async function openFile({ path }: FileLocation, options: OpenOptions): Promise<Backend> {
  const shared = adapterOptions(options);
  const { clock, random } = shared;
  const { store, database } = await openSqlite({ path, ...shared });
  const rows = new ItemRows(database);
  const items = sqliteSnapshots(rows, new Housekeeping(database, rows), clock);
  const countUsage = usageCounter(items, options.usage, DURABLE_USAGE);
  const own = ownProcess();
  const holder = new SlotHolder({
    ...{ clock, random, process: own },
    records: new HolderRecords(store),
    timer: options.timer ?? systemTimer,
    times: holderTimes(LOCAL_HOLDERS, options.slotExpirySeconds),
  });
  return {
    name: path,
    database: { system: sqlite.name },
    traits: sqlite.traits,
    ...countingParts(store, shared, options),
    scannable: store,
    openBuckets: ({ namespaceId }, bucketOptions) => {
      const records = recordsIn((key) => rows.read(key)?.item, namespaceId);
      const place = { database, namespaceId, clock, countUsage, items };
      const table = new SqliteBucketTable({ ...place, ...records });
      holder.onLost(bucketOptions.onWarning);
      return new EmbeddedBucketStore(table, {
        clock,
        random,
        ordinaryTable: table,
        slots: holderAmong(holder, own),
        ...bucketOptions,
      });
    },
  };
}
