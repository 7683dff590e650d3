import { describe, expect, test } from "vitest";
import { type Laned, WaiterLanes } from "../../../src/limiter/waiter-lanes.ts";

function waiter(ticket: number, amounts: Readonly<Record<string, number>>): Laned {
  return { ticket, request: { amounts: new Map(Object.entries(amounts)) } };
}

function lanesOf(...waiters: readonly Laned[]): WaiterLanes<Laned> {
  const lanes = new WaiterLanes<Laned>();
  for (const one of waiters) lanes.add(one);
  return lanes;
}

function aheadOf(lanes: WaiterLanes<Laned>, one: Laned): Record<string, number> {
  const sums = new Map<string, number>();
  lanes.addAhead(sums, one);
  return Object.fromEntries(sums);
}

const a1 = waiter(1, { a: 1 });
const a2 = waiter(2, { a: 2, b: 0 });
const b3 = waiter(3, { b: 3 });
const both4 = waiter(4, { b: 4, a: 4 });
const both5 = waiter(5, { a: 5, b: 5 });
const b6 = waiter(6, { b: 6 });

describe("waiters in lanes", () => {
  test("a lane is the limits of which anything is consumed, in any order", () => {
    const lanes = lanesOf(a1, a2, b3, both4, both5, b6);
    expect([lanes.lanes, lanes.size]).toEqual([3, 6]);
    expect(lanes.heads).toEqual([a1, b3, both4]);
    expect(lanes.all).toEqual([a1, a2, b3, both4, both5, b6]);
  });

  test("the first of all is the one with the lowest ticket, however they came", () => {
    const lanes = lanesOf(both4, b3, a2);
    expect(lanes.first).toBe(a2);
    lanes.delete(a2);
    expect(lanes.first).toBe(b3);
    lanes.add(a1);
    expect(lanes.first).toBe(a1);
  });

  test("a waiter that leaves makes the next one of its lane the head", () => {
    const lanes = lanesOf(a1, a2, b3);
    expect([lanes.isHead(a1), lanes.isHead(a2), lanes.isHead(b3)]).toEqual([true, false, true]);
    lanes.delete(a1);
    expect([lanes.nextOf(a1), lanes.isHead(a2)]).toEqual([a2, true]);
    lanes.delete(a2);
    expect([lanes.nextOf(a1), lanes.lanes, lanes.size]).toEqual([undefined, 1, 1]);
  });

  test("what all need is the sum of those that are there", () => {
    const lanes = lanesOf(a1, b3, both4);
    expect(Object.fromEntries(lanes.needed)).toEqual({ a: 5, b: 7 });
    lanes.delete(both4);
    expect(Object.fromEntries(lanes.needed)).toEqual({ a: 1, b: 3 });
  });

  test.each([
    { of: "the first", one: a1, ahead: {} },
    { of: "one behind its own lane", one: a2, ahead: { a: 1 } },
    { of: "the first of a lane that shares no limit", one: b3, ahead: {} },
    { of: "one that shares a limit with each lane", one: both4, ahead: { a: 3, b: 3 } },
    { of: "the last one", one: b6, ahead: { a: 9, b: 12 } },
  ])("ahead of $of are those that came before and share a limit", ({ one, ahead }) => {
    expect(aheadOf(lanesOf(a1, a2, b3, both4, both5, b6), one)).toEqual(ahead);
  });
});
