/** When a process that has the lock all the time leaves it to others. */

import { Turn } from "@zae-limiter/limiter/storage/sqlite/turn.ts";
import { expect, test } from "vitest";

let now = 1000;

/** Holds the lock again and again, free for a moment in between, until the turn is over. */
function heldUntilOver(turn: Turn, heldMs: number, freeMs: number): number {
  const startedAt = now;
  while (!turn.isOver(now) && now < startedAt + 10_000) {
    turn.add(now, now + heldMs);
    now += heldMs + freeMs;
  }
  return Math.round(now - startedAt);
}

test("a process alone may go on for long", () => {
  expect(heldUntilOver(new Turn(), 0.05, 0)).toBe(40);
});

test("a process that met another one may not", () => {
  const turn = new Turn();
  turn.meet();
  expect(heldUntilOver(turn, 0.05, 0)).toBe(5);
});

test("unused gaps make the turns long again", () => {
  const turn = new Turn();
  turn.meet();
  const lengths: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    turn.restart(false);
    lengths.push(heldUntilOver(turn, 0.05, 0));
  }
  expect(lengths).toStrictEqual([10, 20, 40, 40, 40]);
  expect(turn.gapMs).toBe(2);
  turn.restart(true);
  expect(heldUntilOver(turn, 0.05, 0)).toBe(5);
  expect(turn.gapMs).toBe(6);
});

test("a process that leaves the lock free a fifth of the time never has to stop", () => {
  expect(heldUntilOver(new Turn(), 0.08, 0.02)).toBe(10_000);
  expect(heldUntilOver(new Turn(), 0.09, 0.01)).toBeLessThan(100);
});

test("one long write is a turn", () => {
  const turn = new Turn();
  turn.meet();
  turn.add(0, 6);
  expect(turn.isOver(6)).toBe(true);
  expect(turn.isOver(7)).toBe(false);
});
