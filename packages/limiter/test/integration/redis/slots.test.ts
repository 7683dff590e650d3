/** Slots on Redis: lost and late answers, and processes that are killed or cut off. */

import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { newPrefix, removeKeys, type TestPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll, beforeAll } from "vitest";
import { slotFaultTests } from "../remote/slot-faults.ts";
import { slotMoveTests } from "../remote/slot-moves.ts";
import { slotProcessTests } from "../remote/slot-processes.ts";

describeRedis("slots", (url) => {
  let own: TestPrefix;
  beforeAll(async () => {
    own = await newPrefix(url);
  });
  afterAll(() => own.drop());

  slotMoveTests(() => new RedisItemTable(own.connection));
  slotFaultTests(() => new RedisItemTable(own.connection));

  const { prefix, url: address } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));

  slotProcessTests(() => address);
});
