import { StoreWatch } from "@zae-limiter/gateway/store-watch.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { expect, test } from "vitest";

/** A watch whose pauses end when the test says so. */
function watched() {
  const lines: string[] = [];
  const pauses: (() => void)[] = [];
  const state = { isAvailable: false };
  const watch = new StoreWatch({
    isAvailable: async () => state.isAvailable,
    timer: {
      nowMs: () => 0,
      sleep: (_, signal) =>
        new Promise((resolve) => {
          pauses.push(resolve);
          signal?.addEventListener("abort", () => resolve());
        }),
    },
    tell: (line) => lines.push(line),
  });
  const next = async () => {
    pauses.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { watch, lines, state, next };
}

const error = new RateLimiterUnavailable("connect ECONNREFUSED", {
  stackName: "limits",
  entityId: "team-a",
});

test("a store that goes away is told once, and once more when it answers again", async () => {
  const { watch, lines, state, next } = watched();
  watch.lost(error);
  watch.lost(error);
  await next();
  expect(lines).toEqual(["The store cannot be reached: connect ECONNREFUSED"]);
  state.isAvailable = true;
  await next();
  expect(lines.slice(1)).toEqual(["The store answers again"]);
  watch.lost();
  expect(lines.slice(2)).toEqual(["The store cannot be reached"]);
  watch.stop();
});

test("a watch that was stopped says nothing more", async () => {
  const { watch, lines, state, next } = watched();
  watch.lost(error);
  state.isAvailable = true;
  watch.stop();
  await next();
  watch.lost(error);
  expect(lines).toHaveLength(1);
});
