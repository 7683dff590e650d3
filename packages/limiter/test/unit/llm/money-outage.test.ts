/** Calls that money may apply to, while the store is away: they fail closed. */

import { RateLimiter, RateLimiterUnavailable, Repository } from "@zae-limiter/limiter/index.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { factsOf } from "@zae-limiter/test-support/llm/metered.ts";
import { expect, test } from "vitest";

/** A store that is away from the moment a test says so. */
class LeavingStore extends MemoryItemStore {
  isAway = false;
  override async get(...given: Parameters<MemoryItemStore["get"]>) {
    this.#check();
    return super.get(...given);
  }
  override async transact(...given: Parameters<MemoryItemStore["transact"]>) {
    this.#check();
    return super.transact(...given);
  }
  override async getMany(...given: Parameters<MemoryItemStore["getMany"]>) {
    this.#check();
    return super.getMany(...given);
  }
  override async put(...given: Parameters<MemoryItemStore["put"]>) {
    this.#check();
    return super.put(...given);
  }
  override async update(...given: Parameters<MemoryItemStore["update"]>) {
    this.#check();
    return super.update(...given);
  }
  #check(): void {
    if (this.isAway) throw new RateLimiterUnavailable("away", { nothingWritten: true });
  }
}

const A = { entityId: "a", resource: "gpt-4o" };
const B = { entityId: "b", resource: "gpt-4o" };

test("a call passes uncounted only where it is known that no limit in money applies to it", async () => {
  const store = new LeavingStore();
  const limiter = new RateLimiter(await Repository.over(store), { onUnavailable: "allow" });
  const { limits } = limiter.repository;
  await limits.setSystem(["rpm:1000"]);
  await limits.setEntity("b", ["rpm:1000", "usd:$1/hour"]);
  const options = checkLlmOptions({ entityId: "a" });
  const [closed, open] = [new Metering(limiter, options, true), new Metering(limiter, options)];
  const ended = async (metering: Metering, target: typeof A) => {
    const begun = await metering.begin(factsOf(), target);
    if (!(begun instanceof MeteredCall)) return begun;
    await begun.refund();
    return begun;
  };
  for (const target of [A, B]) expect(await ended(closed, target)).toBeInstanceOf(MeteredCall);
  store.isAway = true;
  expect(await ended(closed, A)).toMatchObject({ isDegraded: true });
  expect(await ended(closed, B)).toBeInstanceOf(RateLimiterUnavailable);
  const unknown = { entityId: "c", resource: "gpt-4o" };
  expect(await ended(closed, unknown)).toBeInstanceOf(RateLimiterUnavailable);
  expect(await ended(open, B)).toMatchObject({ isDegraded: true });
  store.isAway = false;
  expect(await ended(closed, B)).toMatchObject({ isDegraded: false });
  await limiter.close();
});
