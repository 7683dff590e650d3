/** An event that happens once, and the listeners that wait for it. */

import { Cancellation } from "@zae-limiter/gateway/cancellation.ts";
import { expect, test } from "vitest";

test("a cancellation calls each listener once, in the order in which they came", () => {
  const called: string[] = [];
  const cancellation = new Cancellation();
  cancellation.onCancel(() => called.push("first"));
  cancellation.onCancel(() => called.push("second"));
  expect(cancellation.isCancelled).toBe(false);
  cancellation.cancel();
  cancellation.cancel();
  expect(called).toEqual(["first", "second"]);
});

test("a listener that comes after the cancellation is called at once", () => {
  const cancellation = new Cancellation();
  cancellation.cancel();
  let isCalled = false;
  cancellation.onCancel(() => {
    isCalled = true;
  });
  expect(isCalled).toBe(true);
});

test("the signal of a cancellation aborts with it, also when it is first asked for later", () => {
  const [early, late] = [new Cancellation(), new Cancellation()];
  const { signal } = early;
  early.cancel();
  late.cancel();
  expect([signal.aborted, late.signal.aborted]).toEqual([true, true]);
});
