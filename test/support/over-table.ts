/** Opens item stores as though they were tables on DynamoDB: buckets split, and carry stamps. */

import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { openCustom } from "@zae-limiter/limiter/repository/opening.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { type Repository, repositoryOf } from "@zae-limiter/limiter/repository/repository.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";

/** Opens a store like `Repository.over`, with the traits of a table. */
export async function overTable(store: ItemStore, options: OpenOptions = {}): Promise<Repository> {
  const opened = await openCustom(
    store,
    options,
    "memory",
    (context, given) => new DistributedBucketStore(context, { ...given, ...DYNAMODB_TRAITS }),
  );
  return repositoryOf(opened);
}
