import { expect, test } from "vitest";
import { newHistory } from "../../../../src/buckets/distributed/step.ts";
import { NOW } from "./known.ts";

test("a history begins without an outcome, a round or a shard that was tried", () => {
  const history = newHistory(NOW);
  expect(history).toMatchObject({ sinceMs: NOW, rounds: 0, rested: false, last: undefined });
  expect(history.tried.size).toBe(0);
});
