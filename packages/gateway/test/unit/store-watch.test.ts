import { StoreWatch } from "@zae-limiter/gateway/store-watch.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { expect, test } from "vitest";

/** A watch whose pauses end when the test says so. */
function watched() {
  const lines: string[] = [];
  const pauses: (() => void)[] = [];
  const state = { isAvailable: false, asked: 0, nowMs: 0 };
  const watch = new StoreWatch({
    isAvailable: async () => {
      state.asked += 1;
      return state.isAvailable;
    },
    timer: {
      nowMs: () => state.nowMs,
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

test("the operator gets one line when the store goes away and one when it answers again", async () => {
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

test("a thousand questions about the health of a store are one request to it a second", async () => {
  const { watch, lines, state } = watched();
  state.isAvailable = true;
  const ask = () => Promise.all(Array.from({ length: 1000 }, () => watch.health()));
  expect(new Set(await ask())).toEqual(new Set([true]));
  state.nowMs += 999;
  await ask();
  expect(state.asked).toBe(1);
  state.nowMs += 1;
  state.isAvailable = false;
  expect(new Set(await ask())).toEqual(new Set([false]));
  expect(state.asked).toBe(2);
  expect(lines).toEqual(["The store cannot be reached"]);
  watch.stop();
});
