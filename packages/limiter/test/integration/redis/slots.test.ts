/** Processes that share slots on Redis, and processes that are killed or cut off. */

import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll } from "vitest";
import { slotProcessTests } from "../remote/slot-processes.ts";

describeRedis("slots", (url) => {
  const { prefix, url: address } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));

  slotProcessTests(() => address);
});
