/** Usage of embedded stores is bounded, whatever ids come from outside. */

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { afterEach, describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse("2026-11-16T10:00:00Z");
const RESOURCE = "api";
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function fileUrl(): string {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  folders.push(folder);
  return `sqlite:${join(folder, "limits.db")}`;
}

async function acquire(limiter: RateLimiter, entityId: string, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await limiter.acquire({ entityId, resource: RESOURCE, consume: { rpm: 1 } });
  }
}

describe.each([
  ["memory:", () => "memory:"],
  ["sqlite:", fileUrl],
])("bounded usage of entities in %s", (_, url) => {
  test("bounded usage keeps the busiest entities and sums all others", async () => {
    const time = new VirtualTime(START_MS);
    const usage = { maxEntities: 3 };
    const limiter = await RateLimiter.open(url(), { clock: time.clock, usage });
    const { repository } = limiter;
    await repository.limits.setSystem(["rpm:100"]);
    for (let id = 0; id < 20; id += 1) await acquire(limiter, `guest-${id}`);
    for (const id of ["busy-1", "busy-2"]) await acquire(limiter, id, 10);
    const hour = { resource: RESOURCE, window: "hourly" } as const;
    const { total, snapshotCount } = await repository.usage.summary(hour);
    expect(total).toEqual({ rpm: 40 });
    expect(snapshotCount).toBe(4);
    const { snapshots } = await repository.usage.snapshots(hour);
    const events = Object.fromEntries(snapshots.map((one) => [one.entityId, one.totalEvents]));
    expect(events).toMatchObject({ "busy-1": 10, "busy-2": 10, _other_: 19 });
    // An entity that has a snapshot goes on in it.
    await acquire(limiter, "busy-1", 5);
    const own = await repository.usage.summary({ entityId: "busy-1", window: "hourly" });
    expect(own.total).toEqual({ rpm: 15 });
    await limiter.close();
  });

  test("bounded usage has no more snapshots than its bounds allow, however many ids there are", async () => {
    const time = new VirtualTime(START_MS);
    const usage = { maxEntities: 10, retentionDays: 1 };
    const limiter = await RateLimiter.open(url(), { clock: time.clock, usage });
    const { repository } = limiter;
    await repository.limits.setSystem(["rpm:100"]);
    for (let id = 0; id < 600; id += 1) {
      await acquire(limiter, `guest-${id}`);
      time.advance(HOUR_MS / 100);
    }
    time.advance(2 * HOUR_MS);
    const hours = await repository.usage.summary({ resource: RESOURCE, window: "hourly" });
    expect(hours.total).toEqual({ rpm: 600 });
    expect(hours.snapshotCount).toBeLessThanOrEqual(7 * 11);
    // Snapshots whose time is over go with the writes that come along.
    time.advance(40 * DAY_MS);
    for (let id = 0; id < 200; id += 1) await acquire(limiter, `later-${id}`);
    await repository.usage.summary({ resource: RESOURCE });
    const left = await repository.usage.summary({ resource: RESOURCE, window: "hourly" });
    expect(left.total).toEqual({ rpm: 200 });
    expect(left.snapshotCount).toBe(11);
    await limiter.close();
  });

  test("usage is not kept at all with `usage: false`", async () => {
    const limiter = await RateLimiter.open(url(), { usage: false });
    await limiter.repository.limits.setSystem(["rpm:100"]);
    await acquire(limiter, "guest");
    const { snapshotCount } = await limiter.repository.usage.summary({ resource: RESOURCE });
    expect(snapshotCount).toBe(0);
    expect(limiter.repository.capabilities.supportsUsageSnapshots).toBe(false);
    expect(await limiter.available({ entityId: "guest", resource: RESOURCE })).toEqual({ rpm: 99 });
    await limiter.close();
  });

  test.each([true, 0, "none", { days: 3 }, { retentionDays: 0 }, { maxEntities: 1.5 }])(
    "bounded usage refuses %j as its setting",
    async (usage) => {
      const opened = RateLimiter.open(url(), { usage: usage as never });
      await expect(opened).rejects.toBeInstanceOf(ValidationError);
    },
  );
});

test("a setting for usage is refused for DynamoDB, where the aggregator counts", async () => {
  const opened = RateLimiter.open("dynamodb://limits", { usage: { maxEntities: 5 } });
  await expect(opened).rejects.toThrow(/the aggregator counts usage/);
});

test("a file gives back what expired snapshots and their log have used", async () => {
  const time = new VirtualTime(START_MS);
  const url = fileUrl();
  const path = url.slice("sqlite:".length);
  const usage = { retentionDays: 1 };
  const open = () => RateLimiter.open(url, { clock: time.clock, usage });
  let limiter = await open();
  await limiter.repository.limits.setSystem(["rpm:100"]);
  for (let id = 0; id < 500; id += 1) await acquire(limiter, `guest-${id}`);
  await limiter.repository.usage.summary({ resource: RESOURCE });
  await limiter.close();
  const before = statSync(path).size;
  time.advance(60 * DAY_MS);
  limiter = await open();
  for (let round = 0; round < 900; round += 1) {
    await limiter.repository.limits.setSystem([`rpm:${100 + round}`]);
    if (round % 100 === 0) time.advance(DAY_MS);
  }
  await limiter.close();
  expect(statSync(path).size).toBeLessThan(0.75 * before);
});
