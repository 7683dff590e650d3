/** Who waits for a busy bucket, and who may try. Time is virtual. */

import { describe, expect, test } from "vitest";
import { type Busy, ThrottledLines } from "../../../src/buckets/distributed/throttled-lines.ts";
import { RateLimiterUnavailable } from "../../../src/domain/errors.ts";
import { VirtualTime } from "../../../src/testing/time/virtual-time.ts";

const ID = "key-1#api";
const cause = new RateLimiterUnavailable("throttled", {
  reason: "throttled",
  nothingWritten: true,
  keyRange: true,
});
const busy: Busy = { kind: "busy", cause };
const done = { kind: "charged" } as const;

function lines(time: VirtualTime): ThrottledLines {
  return new ThrottledLines(time.timer, () => 0.5);
}

describe("a line of throttled calls", () => {
  test("one tries at first, and one more for every answer", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    let trying = 0;
    const most: number[] = [];
    const attempt = async () => {
      trying += 1;
      most.push(trying);
      await time.timer.sleep(10);
      trying -= 1;
      return done;
    };
    const calls = Array.from({ length: 15 }, () => line.through(ID, busy, 10_000, attempt));
    await time.until(Promise.all(calls));
    expect(most.slice(0, 3)).toEqual([1, 1, 2]);
    expect(Math.max(...most)).toBeGreaterThanOrEqual(4);
  });

  test("half as many after another refusal, and longer pauses when it is down to one", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    const at: number[] = [];
    const attempt = async () => {
      at.push(Math.round(time.timer.nowMs()));
      return at.length < 6 ? busy : done;
    };
    await time.until(line.through(ID, busy, 10_000, attempt));
    const pauses = at.map((ms, index) => ms - (at[index - 1] ?? 0));
    expect(pauses).toEqual([2, 4, 8, 16, 32, 64]);
  });

  test("first come, first served; who was refused again is still the first", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    const served: number[] = [];
    let refusals = 3;
    const call = (number: number) =>
      line.through(ID, busy, 10_000, async () => {
        if (refusals > 0) {
          refusals -= 1;
          return busy;
        }
        served.push(number);
        return done;
      });
    await time.until(Promise.all([1, 2, 3, 4].map(call)));
    expect(served).toEqual([1, 2, 3, 4]);
  });

  test("whoever has no time left hears the cause, in line as well as in front of it", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    const ended: string[] = [];
    const call = (name: string, deadline: number) =>
      line
        .through(ID, busy, deadline, async () => busy)
        .catch((error: unknown) => {
          expect(error).toBe(cause);
          ended.push(`${name} ${time.timer.nowMs() <= deadline}`);
        });
    await time.until(Promise.all([call("first", 500), call("second", 100), call("third", 300)]));
    expect(ended).toEqual(["second true", "third true", "first true"]);
  });

  test("an error that is not about being busy goes to its call, and the next one has its turn", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    const failing = line.through(ID, busy, 1000, async () => {
      throw new Error("lost");
    });
    const next = line.through(ID, busy, 1000, async () => done);
    const settled = await time.until(Promise.allSettled([failing, next]));
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  });

  test("lines of different buckets do not wait for each other", async () => {
    const time = new VirtualTime();
    const line = lines(time);
    const slow = line.through("slow#api", busy, 1000, async () => busy).catch(() => "over");
    await time.until(line.through(ID, busy, 1000, async () => done));
    expect(time.timer.nowMs()).toBeLessThan(10);
    expect(await time.until(slow)).toBe("over");
  });
});
