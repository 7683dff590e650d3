import { ConfigCache, type ConfigSlot } from "@zae-limiter/limiter/records/config/config-cache.ts";
import { expect, test } from "vitest";

const NOW_MS = 1_800_000_000_000;

function slotOf(asOf: number): ConfigSlot {
  return {
    ...{ limits: [], unsupported: [], disabled: undefined, cascade: undefined },
    ...{ onUnavailable: undefined, auditRetentionDays: undefined },
    ...{ parentId: undefined, childrenResources: [] },
    ...{ inactive: undefined, incompatible: undefined },
    ...{ asOf, expiresAtMs: NOW_MS + 60_000 },
  };
}

async function cacheAt(version: number): Promise<ConfigCache> {
  const cache = new ConfigCache({ ttlSeconds: 60, clock: () => NOW_MS });
  cache.observe(version);
  await cache.load(["a"], async () => [slotOf(version)]);
  return cache;
}

test.each([
  ["the version that a slot was read at keeps it", 5, true],
  ["a newer version drops it", 6, false],
  ["a version that went back drops it: the counter was set by another client", 4, false],
])("%s", async (_, observed, kept) => {
  const cache = await cacheAt(5);
  expect(cache.peek("a")).toBeDefined();
  cache.observe(observed);
  expect(cache.peek("a") !== undefined).toBe(kept);
});
