/**
 * A grant from one shard of a split bucket shows that shard only. What it says of the others may be
 * old, and what is old refuses no call that comes behind a queue.
 */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test } from "vitest";

const BUCKET = { entityId: "key-1", resource: "gpt-4" };

/** The store as seen from far away: each write takes ten milliseconds to be answered. */
function distant(items: ItemStore, time: VirtualTime): ItemStore {
  const update: ItemStore["update"] = async (...call) => {
    const answer = await items.update(...call);
    await time.timer.sleep(10);
    return answer;
  };
  return new Proxy(items, {
    get(target, name) {
      const value = name === "update" ? update : Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A bucket of two shards: this process holds all of one and another process all of the other. */
async function held() {
  const time = new VirtualTime(1_800_000_000_000);
  const items = new MemoryItemStore();
  const open = async (store: ItemStore) =>
    new RateLimiter(await overTable(store, { clock: time.clock, timer: time.timer }));
  const own = await open(distant(items, time));
  const other = await open(items);
  await other.repository.limits.setSystem(["rpd:10/day"]);
  await (await other.acquire({ ...BUCKET, consume: { rpd: 1 } })).rollback();
  const { namespaceId } = other.repository[INTERNALS].records;
  await splitInto(items, { namespaceId, ...BUCKET }, 2, time.nowMs);
  const ofOther = await other.acquire({ ...BUCKET, consume: { rpd: 5 } });
  const ofOwn = await time.until(own.acquire({ ...BUCKET, consume: { rpd: 5 } }));
  return { time, own, other, ofOwn, ofOther };
}

test("a grant from one shard lets no old state of another one refuse a call behind the queue", async () => {
  const { time, own, other, ofOwn, ofOther } = await held();
  const patient = { ...BUCKET, maxWaitSeconds: 90_000 };
  const first = own.tryAcquire({ ...patient, consume: { rpd: 4 } });
  const second = own.tryAcquire({ ...patient, consume: { rpd: 5 } });
  await time.pass(1500);
  await ofOther.rollback();
  // The first one is granted from the shard of this process; 6 tokens are left, one of them there.
  const returned = ofOwn.rollback();
  const behind = first.then(() => own.tryAcquire({ ...BUCKET, consume: { rpd: 1 } }));
  const answers = await time.until(Promise.all([first, second, behind]));
  await returned;
  expect(answers.map(({ granted }) => granted)).toEqual([true, true, true]);
  await own.close();
  await other.close();
});
