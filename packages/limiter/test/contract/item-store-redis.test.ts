/** The contract on Redis and Valkey. */

import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { newPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";

describeRedis("a table", (url) => {
  const prefix = forSuite(() => newPrefix(url));

  async function open(): Promise<OpenedStore> {
    const store = new RedisItemTable(await prefix().connect());
    return { store, close: () => store.close() };
  }

  itemStoreContract("a table", open, { many: 500 });
});
