/** How many answers are read on after their clients have left, and for how long. */

import { ReadingOn, type ReadOnOutcome } from "@zae-limiter/gateway/reading-on.ts";
import { expect, test } from "vitest";

/** Reads on with a timer whose sleeps end when the test says so. */
function reading(max: number) {
  const outcomes: ReadOnOutcome[] = [];
  const pauses: (() => void)[] = [];
  const readingOn = new ReadingOn({
    max,
    timeoutMs: 1000,
    timer: {
      nowMs: () => 0,
      sleep: (_, signal) =>
        new Promise((resolve) => {
          pauses.push(resolve);
          signal?.addEventListener("abort", () => resolve());
        }),
    },
    onOutcome: (outcome) => outcomes.push(outcome),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { readingOn, outcomes, pauses, turn };
}

test("as many calls as there are places are read on, and a place is free again after its call", () => {
  const { readingOn, outcomes } = reading(1);
  const done = readingOn.start("a", () => {});
  expect(done).toBeTypeOf("function");
  expect(readingOn.start("a", () => {})).toBeUndefined();
  done?.(true);
  expect(readingOn.start("a", () => {})).toBeTypeOf("function");
  expect(outcomes).toEqual(["no place", "complete"]);
});

test("a call that takes too long is ended", async () => {
  const { readingOn, outcomes, pauses, turn } = reading(1);
  let isEnded = false;
  const done = readingOn.start("a", () => {
    isEnded = true;
  });
  pauses[0]?.();
  await turn();
  expect(isEnded).toBe(true);
  done?.(false);
  expect(outcomes).toEqual(["ended"]);
});

test("a call that has ended by itself is not ended again", async () => {
  const { readingOn, turn } = reading(1);
  let isEnded = false;
  readingOn.start("a", () => {
    isEnded = true;
  })?.(true);
  await turn();
  expect(isEnded).toBe(false);
});

test("a gateway that stops ends all calls and reads on none", async () => {
  const { readingOn, turn } = reading(8);
  let ended = 0;
  const end = () => {
    ended += 1;
  };
  readingOn.start("a", end);
  readingOn.start("a", end);
  readingOn.stop();
  await turn();
  expect(ended).toBe(2);
  expect(readingOn.start("a", end)).toBeUndefined();
});

test("one entity has a quarter of the places, so that it cannot take those of others", () => {
  const { readingOn } = reading(8);
  const first = readingOn.start("a", () => {});
  expect(readingOn.start("a", () => {})).toBeTypeOf("function");
  expect(readingOn.start("a", () => {})).toBeUndefined();
  expect(readingOn.start("b", () => {})).toBeTypeOf("function");
  first?.(true);
  expect(readingOn.start("a", () => {})).toBeTypeOf("function");
});
