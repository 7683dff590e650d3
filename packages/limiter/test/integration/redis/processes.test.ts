/** Processes that share buckets on Redis, and processes that are killed. */

import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll } from "vitest";
import { busyBucketTests } from "../remote/busy-buckets.ts";
import { processTests } from "../remote/processes.ts";

describeRedis("processes", (url) => {
  const { prefix, url: address } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));

  processTests(() => ({ address, readsClock: false }));

  busyBucketTests(() => address);
});
