/** Clients that compete for the cells of one table: their steps run again until they fit. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { expect, test } from "vitest";
import { Faults, faultyTable } from "./faults.ts";

const OWN_STORE = new URL("../../../../../examples/own-store/map-table.js", import.meta.url).href;
const NOW = 1_900_000_000_000;
const CLIENTS = 2;

async function clientsOf(table: ItemTable, calls: StoreCall[]): Promise<RateLimiter[]> {
  const options = {
    clock: () => NOW,
    timeoutMs: 20_000,
    onCall: (call: StoreCall) => calls.push(call),
  };
  return Promise.all(
    Array.from(
      { length: CLIENTS },
      async () => new RateLimiter(await Repository.over(faultyTable(table, new Faults()), options)),
    ),
  );
}

test("clients that compete for a bucket and its parent are granted what the parent has", async () => {
  const { MapTable } = (await import(/* @vite-ignore */ OWN_STORE)) as {
    MapTable: new () => ItemTable;
  };
  const calls: StoreCall[] = [];
  const clients = await clientsOf(new MapTable(), calls);
  const { entities, limits, usage } = (clients[0] as RateLimiter).repository;
  await entities.create({ id: "project" });
  await limits.setEntity("project", ["rpd:40/day"]);
  await limits.setSystem(["rpd:20/day"]);
  const keys = ["key-1", "key-2", "key-3"];
  for (const id of keys) await entities.create({ id, parentId: "project", cascade: true });

  calls.splice(0);
  const decisions = await Promise.all(
    clients.flatMap((limiter) =>
      keys.flatMap((entityId) =>
        Array.from({ length: 8 }, () =>
          limiter.tryAcquire({ entityId, resource: "api", consume: { rpd: 1 } }),
        ),
      ),
    ),
  );
  const granted = decisions.filter((decision) => decision.granted);
  expect(granted).toHaveLength(40);
  // The cells did change under the steps of others, or this test shows nothing.
  expect(calls.some(({ outcome }) => outcome === "condition")).toBe(true);

  for (const { lease } of granted.slice(0, 10)) await lease.rollback();
  const [, other] = clients;
  expect(await other?.available({ entityId: "project", resource: "api" })).toEqual({ rpd: 10 });
  const totals = await Promise.all(
    ["project", ...keys].map(async (entityId) => (await usage.summary({ entityId })).total["rpd"]),
  );
  const [ofProject, ...ofKeys] = totals;
  expect(ofProject).toBe(30);
  expect(ofKeys.reduce((sum = 0, one = 0) => sum + one)).toBe(30);
  for (const limiter of clients) await limiter.close();
});
