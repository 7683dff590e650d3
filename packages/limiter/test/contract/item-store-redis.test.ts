/** The contract on Redis and Valkey. */

import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { itemStoreContract } from "@zae-limiter/test-support/item-store-contract.ts";
import { newPrefix, type TestPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import type { OpenedStore } from "@zae-limiter/testing/item-store-contract/subject.ts";
import { afterAll, beforeAll } from "vitest";

describeRedis("a table", (url) => {
  let prefix: TestPrefix;
  beforeAll(async () => {
    prefix = await newPrefix(url);
  });
  afterAll(() => prefix.drop());

  async function open(): Promise<OpenedStore> {
    const store = new RedisItemTable(await prefix.connect());
    return { store, close: () => store.close() };
  }

  itemStoreContract("a table", open, { many: 500 });
});
