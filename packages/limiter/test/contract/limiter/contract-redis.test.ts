/** The limiter's contract on Redis and Valkey. */

import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { limiterContract } from "@zae-limiter/testing/limiter-contract/contract.ts";
import * as vitest from "vitest";
import { openRedis } from "./limiter-stores.ts";

describeRedis("the limiter", (url) => {
  limiterContract(vitest, "redis", () => openRedis(url), { slots: true });
});
