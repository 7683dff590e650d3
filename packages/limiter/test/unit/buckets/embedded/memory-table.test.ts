/** How the memory store makes room when more ids come than it wants to remember. */

import { EmbeddedBucketStore } from "@zae-limiter/limiter/buckets/embedded/embedded-bucket-store.ts";
import { MemoryBucketTable } from "@zae-limiter/limiter/buckets/embedded/memory-table.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const RESOURCE = "api";
const START_MS = Date.parse("2026-11-16T10:00:00Z");
const ROOM = { kept: 10, most: 30, idleMs: 60_000 };

/** A store with its clock, and the usage that deleted buckets have left. */
function opened() {
  const time = { nowMs: START_MS };
  const clock = () => time.nowMs;
  const counted: string[] = [];
  const table = new MemoryBucketTable({
    namespaceId: "ns",
    clock,
    countUsage: ({ entityId }) => counted.push(entityId),
    recordedLink: () => UNLINKED,
    wasDeleted: () => false,
    items: { read: () => undefined, update: () => undefined },
    refuseClosed: () => undefined,
    room: ROOM,
  });
  const onWarning = () => undefined;
  const store = new EmbeddedBucketStore(table, {
    clock,
    ttlMultiplier: 100,
    onWarning,
    ordinaryTable: table,
  });
  const limits = [Limit.parse("rpm:60")];
  const config = { limits, source: "system", version: 1 } as const;
  const consume = async (entityId: string, tokens = 1) => {
    const amountsMilli = [tokens * 1000];
    const link = UNLINKED;
    const leg = { entityId, resource: RESOURCE, config, amountsMilli, link, linkIsFresh: true };
    return (await store.consume([leg])).outcome;
  };
  const kept = () => table.ofResource(RESOURCE, undefined).map(({ entityId }) => entityId);
  return { time, consume, kept, counted };
}

test("buckets stay while there are few of them, however idle they are", async () => {
  const { time, consume, kept, counted } = opened();
  for (let id = 0; id < ROOM.kept; id += 1) await consume(`guest-${id}`);
  time.nowMs += 10 * ROOM.idleMs;
  for (let again = 0; again < 20; again += 1) await consume("guest-0");
  expect(kept()).toHaveLength(ROOM.kept);
  expect(counted).toEqual([]);
});

test("with many buckets, full ones that are idle go and their usage is counted", async () => {
  const { time, consume, kept, counted } = opened();
  for (let id = 0; id < 20; id += 1) await consume(`guest-${String(id).padStart(2, "0")}`);
  time.nowMs += ROOM.idleMs;
  for (let again = 0; again < 20; again += 1) await consume("regular");
  expect(kept()).toContain("regular");
  expect(kept()).toHaveLength(ROOM.kept);
  expect(counted).toHaveLength(21 - ROOM.kept);
});

test("with many buckets, full ones that were used a moment ago stay", async () => {
  const { time, consume, kept } = opened();
  for (let id = 0; id < 20; id += 1) await consume(`guest-${id}`);
  time.nowMs += ROOM.idleMs - 1;
  for (let again = 0; again < 20; again += 1) await consume("regular");
  expect(kept()).toHaveLength(21);
});

test("with too many buckets, every full one may go", async () => {
  const { time, consume, kept } = opened();
  for (let id = 0; id < 100; id += 1) {
    await consume(`guest-${id}`);
    time.nowMs += 1000;
  }
  expect(kept().length).toBeLessThanOrEqual(ROOM.most + 1);
});

test("a bucket that is not full stays and goes on refusing", async () => {
  const { time, consume } = opened();
  for (let id = 0; id < 20; id += 1) await consume(`guest-${id}`);
  expect(await consume("regular", 60)).toBe("granted");
  time.nowMs += 59_000;
  for (let id = 20; id < 120; id += 1) await consume(`guest-${id}`);
  expect(await consume("regular", 60)).toBe("refused");
  expect(await consume("regular", 59)).toBe("granted");
});
