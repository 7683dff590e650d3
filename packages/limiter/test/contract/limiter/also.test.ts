/** The cost of several resources in one acquire. What is consumed is in the contract. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const CALL = {
  entityId: "key-1",
  resource: "chat",
  consume: { rpd: 1 },
  also: [
    { resource: "embed", consume: { rpd: 2 } },
    { resource: "search", consume: { rpd: 3 } },
  ],
};

describeItemStores("the cost of two resources", (store) => {
  it("the cost of two resources is two requests of one unit when warm, sent at the same time", async () => {
    const calls: StoreCall[] = [];
    const subject = await store.open({ onCall: (call) => void calls.push(call) });
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpd:10/day"]);
    const call = { ...CALL, also: CALL.also.slice(0, 1) };
    for (let round = 0; round < 2; round += 1) await limiter.acquire(call);
    calls.splice(0);
    await limiter.acquire(call);
    expect(calls.map(({ readUnits }) => readUnits)).toEqual([0, 0]);
    if (store.real) expect(calls.map(({ writeUnits }) => writeUnits)).toEqual([1, 1]);
  });
});
