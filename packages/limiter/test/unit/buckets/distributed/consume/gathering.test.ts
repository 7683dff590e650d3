/** Work that is shared: when it goes, and when each call that shares it ends. */

import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { Gathering } from "@zae-limiter/limiter/buckets/distributed/consume/gathering.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";

const TIMEOUT_MS = 800;

interface Named {
  readonly name: string;
  readonly deadline: Deadline;
}

/** Work that takes until the latest deadline of what is done together, as on a throttled table. */
function slow(overdue?: () => Error) {
  const time = new VirtualTime();
  const groups: string[] = [];
  const run = async (works: readonly Named[]) => {
    groups.push(works.map(({ name }) => name).join(""));
    const latest = Math.max(...works.map(({ deadline }) => deadline.leftMs));
    await time.timer.sleep(latest);
  };
  const gathering = new Gathering<Named>({ width: 2, timer: time.timer, run, overdue });
  const ended: Record<string, string> = {};
  const add = (name: string) => {
    const work = { name, deadline: new Deadline(time.timer, TIMEOUT_MS) };
    const startMs = time.nowMs;
    const end = (how: string) => {
      ended[name] = `${how} after ${time.nowMs - startMs} ms`;
    };
    gathering.add("bucket", work).then(
      () => end("done"),
      (error: Error) => end(error.message),
    );
  };
  return { time, groups, gathering, ended, add };
}

describe("work that is shared", () => {
  test("shared work ends for each call at its own deadline, and goes on", async () => {
    const { time, groups, gathering, ended, add } = slow();
    for (const [name, pauseMs] of [
      ["a", 100],
      ["b", 100],
      ["c", 500],
      ["d", 0],
    ] as const) {
      add(name);
      await time.pass(pauseMs);
    }
    let isIdle = false;
    void gathering.idle().then(() => {
      isIdle = true;
    });
    await time.pass(400);
    expect(groups).toEqual(["a", "b", "cd"]);
    expect(ended.c).toBe("done after 800 ms");
    expect(isIdle).toBe(false);
    await time.pass(2000);
    expect(ended.d).toBe("done after 800 ms");
    expect(isIdle).toBe(true);
  });

  test("shared work that waits at its deadline is not done, and the call is told so", async () => {
    const { time, groups, gathering, ended, add } = slow(() => new Error("waited"));
    void time.timer.sleep(100).then(() => add("b"));
    add("a");
    await time.pass(100);
    const hurried = { name: "c", deadline: new Deadline(time.timer, 300) };
    const waited = gathering.add("bucket", hurried).catch((error: Error) => error.message);
    await time.pass(300);
    expect(await waited).toBe("waited");
    add("d");
    await time.pass(3000);
    expect(groups).toEqual(["a", "b", "d"]);
    expect(ended).toEqual({
      a: "done after 800 ms",
      b: "done after 800 ms",
      d: "done after 800 ms",
    });
  });

  test("shared work that was sent is answered by what comes of it", async () => {
    const { time, groups, ended, add } = slow(() => new Error("waited"));
    for (const [name, pauseMs] of [
      ["a", 0],
      ["b", 300],
      ["c", 0],
      ["d", 400],
      ["e", 0],
    ] as const) {
      add(name);
      await time.pass(pauseMs);
    }
    await time.pass(3000);
    expect(groups).toEqual(["a", "b", "cde"]);
    expect(ended).toMatchObject({ d: "done after 1200 ms", e: "done after 800 ms" });
  });
});

test("rollbacks that share refunds on a throttled table end within the timeout each", async () => {
  const time = new VirtualTime();
  const table = new SimulatedTable({ time });
  const limiter = await time.until(table.process().open({ timeoutMs: TIMEOUT_MS }));
  await time.until(limiter.repository.limits.setSystem(["rpm:100"]));
  const request = { entityId: "key-1", resource: "api", consume: { rpm: 1 } };
  const leases = [];
  for (let lease = 0; lease < 4; lease += 1) {
    leases.push(await time.until(limiter.acquire(request)));
  }
  table.writeUnitsPerSecond = 0.001;
  const tookMs: number[] = [];
  const pausesMs = [100, 100, 400, 0];
  for (const [at, lease] of leases.entries()) {
    const startMs = time.nowMs;
    void lease.rollback().then(() => {
      tookMs[at] = time.nowMs - startMs;
    });
    await time.pass(pausesMs[at] as number);
  }
  await time.pass(1500);
  for (const ms of tookMs) expect(ms).toBeLessThanOrEqual(TIMEOUT_MS + 10);
  expect(tookMs).toHaveLength(4);
  table.writeUnitsPerSecond = 1000;
  await time.until(limiter.close());
  const items = [];
  for await (const item of table.items(limiter.repository.namespaceId)) items.push(item);
  expect(items.find(({ PK }) => PK.includes("/BUCKET#key-1#"))?.b_rpm_tc).toBe(0);
});
