/** Work that is done together: when it goes, and when each call that shares it ends. */

import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { Alarm, Gathering, Waiting } from "@zae-limiter/limiter/buckets/gathering.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test, vi } from "vitest";

const TIMEOUT_MS = 800;

class Named extends Waiting<void> {
  readonly name: string;
  readonly #late: "fails" | "goes on";

  constructor(name: string, late: "fails" | "goes on", ends: Ends) {
    super(...ends);
    this.name = name;
    this.#late = late;
  }

  override get isDue(): boolean {
    return this.isOpen || this.#late === "goes on";
  }

  expire(): void {
    if (this.#late === "goes on") this.answer();
    else if (!this.isSent) this.fail(new Error("waited"));
  }
}

type Ends = ConstructorParameters<typeof Waiting<void>>;

/** Work that takes until the latest deadline of what is done together, as on a throttled table. */
function slow(late: "fails" | "goes on") {
  const time = new VirtualTime();
  const groups: string[] = [];
  const run = async (together: readonly Named[]) => {
    groups.push(together.map(({ name }) => name).join(""));
    for (const one of together) one.isSent = true;
    await time.timer.sleep(Math.max(...together.map(({ deadline }) => deadline.leftMs)));
    for (const one of together) if (one.isOpen) one.answer();
  };
  const gathering = new Gathering<Named>(time.timer, { max: 256, joins: () => true, run });
  const ended: Record<string, string> = {};
  const add = (name: string, timeoutMs = TIMEOUT_MS, signal?: AbortSignal) => {
    const startMs = time.nowMs;
    const end = (how: string) => {
      ended[name] = `${how} after ${time.nowMs - startMs} ms`;
    };
    const fail = (error: unknown) => end((error as Error).message);
    const deadline = new Deadline(time.timer, timeoutMs);
    const one = new Named(name, late, [deadline, () => end("done"), fail]);
    gathering.add("bucket", one, signal);
    return one;
  };
  return { time, groups, gathering, ended, add };
}

describe("work that is shared", () => {
  test("shared work ends for each call at its own deadline, and goes on", async () => {
    const { time, groups, gathering, ended, add } = slow("goes on");
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
    const { time, groups, ended, add } = slow("fails");
    void time.timer.sleep(100).then(() => add("b"));
    add("a");
    await time.pass(100);
    add("c", 300);
    await time.pass(300);
    expect(ended.c).toBe("waited after 300 ms");
    add("d");
    await time.pass(3000);
    expect(groups).toEqual(["a", "b", "d"]);
    expect(ended).toEqual({
      a: "done after 800 ms",
      b: "done after 800 ms",
      c: "waited after 300 ms",
      d: "done after 800 ms",
    });
  });

  test("shared work that was sent is answered by what comes of it", async () => {
    const { time, groups, ended, add } = slow("fails");
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

test("a call that waits leaves its place when its signal aborts, and another one goes", async () => {
  const { time, groups, gathering, ended, add } = slow("fails");
  add("a");
  await time.pass(0);
  add("b");
  await time.pass(0);
  const abort = new AbortController();
  add("c", TIMEOUT_MS, abort.signal);
  add("d");
  abort.abort(new Error("left"));
  await time.pass(0);
  expect(ended).toEqual({ c: "left after 0 ms" });
  await time.pass(3000);
  expect(groups).toEqual(["a", "b", "d"]);
  await gathering.idle();
});

function watched() {
  const time = new VirtualTime();
  const alarm = new Alarm(time.timer);
  const ended: [name: string, atMs: number][] = [];
  const watch = (name: string, timeoutMs: number) => {
    const end = () => ended.push([name, time.timer.nowMs()]);
    const one = new Named(name, "fails", [new Deadline(time.timer, timeoutMs), end, end]);
    alarm.watch(one);
    return one;
  };
  return { time, alarm, ended, watch };
}

test("each call ends at its own deadline, in whichever order they came", async () => {
  const { time, ended, watch } = watched();
  watch("late", 300);
  watch("early", 100);
  watch("middle", 200);
  await time.pass(1000);
  expect(ended).toEqual([
    ["early", 100],
    ["middle", 200],
    ["late", 300],
  ]);
});

test("a call that has its answer is not ended again", async () => {
  const { time, ended, watch } = watched();
  const one = watch("answered", 100);
  one.answer();
  await time.pass(1000);
  expect(ended).toEqual([["answered", 0]]);
});

test("an alarm sets no further timer once all that it watched have ended", async () => {
  const { time, watch } = watched();
  watch("answered", 100).answer();
  watch("late", 300);
  await time.pass(1000);
  expect(time.timer.nowMs()).toBe(1000);
  const sleeps = vi.spyOn(time.timer, "sleep");
  await time.pass(1000);
  expect(sleeps).not.toHaveBeenCalled();
});

test("a call is watched once, and an alarm that has rung watches on", async () => {
  const { time, alarm, ended, watch } = watched();
  alarm.watch(watch("once", 100));
  await time.pass(150);
  watch("again", 100);
  await time.pass(150);
  expect(ended).toEqual([
    ["once", 100],
    ["again", 250],
  ]);
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
