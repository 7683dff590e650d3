/** Processes that share buckets on Redis, and processes that are killed. */

import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll } from "vitest";
import { processTests } from "../remote/processes.ts";

/** A process asks for the time once, and may wait that long for the answer on a busy machine. */
const APART_MS = 10_000;

describeRedis("processes", (url) => {
  const { prefix, url: address } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));

  processTests(() => ({ address, apartMs: APART_MS }));
});
