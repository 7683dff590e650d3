/**
 * Each scenario of `examples/loadtest` on every store: its report is what the store has counted.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { checkLoad } from "@zae-limiter/loadtest/define-load.ts";
import { LocalFleet } from "@zae-limiter/loadtest/local-fleet.ts";
import { Results } from "@zae-limiter/loadtest/results.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, test } from "vitest";

const USERS = 6;

describeStores("the scenarios for load tests", (store) => {
  test.each([
    ["simple", "rpm", 100],
    ["max-rps", "rpm", undefined],
    ["llm", "tpm", undefined],
    ["flood", "rps", undefined],
  ])("%s reports exactly what the store has counted", async (name, limitName, rate) => {
    const file = new URL(`../../../../examples/loadtest/${name}.mjs`, import.meta.url);
    const load = checkLoad((await import(file.href)).default);
    const repository = await store.open();
    const limiter = new RateLimiter(repository);
    await load.setup?.({ limiter, repository });
    const results = new Results();
    const classes = Object.keys(load.users);
    const plan = { classes, users: USERS, spawnRate: 1e6, durationMs: 100, intervalMs: 50, rate };
    const onSlice = results.add.bind(results);
    await new LocalFleet({ load, limiter, plan, onSlice }).run();
    const total = results.total.total();
    expect([...total.errors]).toEqual([]);
    expect(total.tasks).toBeGreaterThanOrEqual(USERS);
    const entities = classes.flatMap((each) =>
      Array.from({ length: USERS }, (_, user) => `${each}-${user}`),
    );
    const states = await Promise.all(
      [...entities, "loadtest-flood"].map((id) => repository.buckets.list(id)),
    );
    const counted = states
      .flat()
      .filter((state) => state.limitName === limitName)
      .reduce((sum, state) => sum + state.totalConsumed, 0);
    expect(counted).toBeGreaterThan(0);
    expect(total.consumed.get(limitName)).toBe(counted);
  });
});
