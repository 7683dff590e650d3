import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { Alarm } from "@zae-limiter/limiter/buckets/distributed/consume/alarm.ts";
import { WaitingConsume } from "@zae-limiter/limiter/buckets/distributed/consume/group.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/link.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, test, vi } from "vitest";

const LEG = {
  ...{ entityId: "e", resource: "r", config: configOf(["a:10/min"]), amountsMilli: [1000] },
  ...{ link: UNLINKED, linkIsFresh: true },
};

function watched() {
  const time = new VirtualTime();
  const alarm = new Alarm(time.timer);
  const ended: [name: string, atMs: number][] = [];
  const watch = (name: string, timeoutMs: number) => {
    const end = () => ended.push([name, time.timer.nowMs()]);
    const waiter = new WaitingConsume(LEG, new Deadline(time.timer, timeoutMs), end, end);
    alarm.watch(waiter);
    return waiter;
  };
  return { time, alarm, ended, watch };
}

test("each consume ends at its own deadline, in whichever order they came", async () => {
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

test("a consume that has its answer is not ended again", async () => {
  const { time, ended, watch } = watched();
  const waiter = watch("answered", 100);
  waiter.answer({ kind: "outdated" });
  await time.pass(1000);
  expect(ended).toEqual([["answered", 0]]);
});

test("an alarm sets no further timer once all that it watched have ended", async () => {
  const { time, watch } = watched();
  watch("answered", 100).answer({ kind: "outdated" });
  watch("late", 300);
  await time.pass(1000);
  expect(time.timer.nowMs()).toBe(1000);
  const sleeps = vi.spyOn(time.timer, "sleep");
  await time.pass(1000);
  expect(sleeps).not.toHaveBeenCalled();
});

test("a consume is watched once, and an alarm that has rung watches on", async () => {
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
