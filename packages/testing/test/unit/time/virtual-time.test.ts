import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { hashOf, seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { EventQueue } from "@zae-limiter/testing/time/event-queue.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";

describe("virtual time", () => {
  test("virtual time stands still until it is told to pass, and wakes sleepers at their moment", async () => {
    const time = new VirtualTime(1000);
    const woken: [string, number][] = [];
    const sleep = async (name: string, ms: number) => {
      await time.timer.sleep(ms);
      woken.push([name, time.nowMs]);
    };
    void sleep("late", 50);
    void sleep("early", 10);
    await Promise.resolve();
    expect(woken).toEqual([]);
    await time.pass(49);
    expect([woken, time.nowMs]).toEqual([[["early", 1010]], 1049]);
    await time.pass(1);
    expect(woken).toEqual([
      ["early", 1010],
      ["late", 1050],
    ]);
  });

  test("what one moment leads to is done before the next one begins", async () => {
    const time = new VirtualTime(0);
    const seen: string[] = [];
    time.after(1, () => {
      void (async () => {
        for (let step = 0; step < 50; step += 1) await Promise.resolve();
        seen.push("first");
      })();
    });
    time.after(1, () => seen.push("second"));
    await time.pass(1);
    expect(seen).toEqual(["first", "second"]);
  });

  test("a sleep ends early, without an error, when its signal aborts", async () => {
    const time = new VirtualTime(0);
    const controller = new AbortController();
    const sleeping = time.timer.sleep(1000, controller.signal);
    time.after(5, () => controller.abort());
    await time.until(sleeping);
    expect(time.nowMs).toBe(5);
    await time.until(time.timer.sleep(1000, controller.signal));
    expect(time.nowMs).toBe(5);
  });

  test("what was called off does not happen", async () => {
    const time = new VirtualTime(0);
    let happened = false;
    const callOff = time.after(10, () => {
      happened = true;
    });
    callOff();
    await time.pass(20);
    expect(happened).toBe(false);
  });

  test("advancing the clock wakes what is due, and a step back wakes nothing", async () => {
    const time = new VirtualTime(1000);
    const woken: number[] = [];
    time.after(10, () => woken.push(time.nowMs));
    time.after(30, () => woken.push(time.nowMs));
    time.advance(-500);
    expect([woken, time.nowMs]).toEqual([[], 500]);
    time.advance(520);
    expect([woken, time.nowMs]).toEqual([[1020], 1020]);
    await time.pass(10);
    expect(woken).toEqual([1020, 1030]);
  });

  test("settling lets everything happen that needs no time, and nothing else", async () => {
    const time = new VirtualTime(1000);
    const seen: string[] = [];
    time.after(0, () => void Promise.resolve().then(() => seen.push("now")));
    time.after(1, () => seen.push("later"));
    await time.settle();
    expect([seen, time.nowMs]).toEqual([["now"], 1000]);
  });

  test("no time passes during a call to something real", async () => {
    const time = new VirtualTime(1000);
    const seen: string[] = [];
    time.after(5, () => seen.push("planned"));
    let answer = (_: string) => {};
    const call = time.during(new Promise<string>((resolve) => (answer = resolve)));
    void call.then((text) => seen.push(`${text} at ${time.nowMs}`));
    const passing = time.pass(10);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    expect([seen, time.nowMs]).toEqual([[], 1000]);
    answer("answered");
    await passing;
    expect([seen, time.nowMs]).toEqual([["answered at 1000", "planned"], 1010]);
    await expect(time.until(time.during(Promise.reject(new Error("broken"))))).rejects.toThrow(
      "broken",
    );
  });

  test("virtual time says so when nothing is planned that could end the wait", async () => {
    const time = new VirtualTime(0);
    await expect(time.until(new Promise(() => {}))).rejects.toThrow(/Nothing is planned/);
    await expect(time.until(Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  });

  test("the clock is whole, the timer begins at zero, odd starts are refused", async () => {
    const time = new VirtualTime(1000);
    await time.pass(0.75);
    expect([time.clock(), time.timer.nowMs()]).toEqual([1000, 0.75]);
    expect(() => new VirtualTime(Number.NaN)).toThrow(ValidationError);
  });
});

describe("the queue of events", () => {
  test("the queue of events hands them out by time, and by the order they were planned in at one time", () => {
    const queue = new EventQueue();
    const random = seededRandom(3);
    const planned = Array.from({ length: 2000 }, (_, order) => ({
      atMs: Math.floor(random() * 100),
      order,
    }));
    for (const { atMs } of planned) queue.plan(atMs, () => {});
    const taken: { atMs: number; order: number }[] = [];
    while (queue.nextMs !== undefined) {
      const { atMs, order } = queue.take();
      taken.push({ atMs, order });
    }
    const sorted = planned.sort((one, other) => one.atMs - other.atMs || one.order - other.order);
    expect(taken).toEqual(sorted);
    expect(queue.size).toBe(0);
  });
});

describe("seeded random numbers", () => {
  test("a seeded source of random numbers repeats itself by seed and label, and is spread evenly", () => {
    const draws = (seed: number, label?: string) => {
      const random = seededRandom(seed, label);
      return Array.from({ length: 1000 }, () => random());
    };
    expect(draws(7)).toEqual(draws(7));
    expect(draws(7)).not.toEqual(draws(8));
    expect(draws(7, "a")).not.toEqual(draws(7, "b"));
    expect(draws(2 ** 33)).not.toEqual(draws(0));
    const mean = draws(1).reduce((sum, draw) => sum + draw, 0) / 1000;
    expect(mean).toBeGreaterThan(0.45);
    expect(mean).toBeLessThan(0.55);
    expect(draws(1).every((draw) => draw >= 0 && draw < 1)).toBe(true);
  });

  test("hashes of texts differ", () => {
    expect(new Set(["", "a", "b", "ab", "ba"].map(hashOf)).size).toBe(5);
  });
});
