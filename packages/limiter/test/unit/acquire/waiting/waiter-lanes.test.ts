import {
  type Laned,
  WaiterLanes,
  WaiterQueue,
} from "@zae-limiter/limiter/acquire/waiting/waiter-lanes.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

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

  test("the first waiter is the one with the lowest ticket, whatever the order they came in", () => {
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

  test("the need of all waiters is the sum of those in the queue", () => {
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

describe("one lane of waiters", () => {
  const step = fc.record({ ticket: fc.nat(30), leaves: fc.boolean() });

  test("a queue holds its waiters by their tickets while waiters come and go", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = new WaiterQueue<{ ticket: number }>();
        const waiters = new Map<number, { ticket: number }>();
        for (const { ticket, leaves } of steps) {
          const known = waiters.get(ticket);
          if (known !== undefined && leaves) {
            queue.delete(known);
            waiters.delete(ticket);
          } else if (known === undefined) {
            const waiter = { ticket };
            waiters.set(ticket, waiter);
            queue.add(waiter);
          }
          const tickets = [...waiters.keys()].sort((left, right) => left - right);
          expect([...queue].map((each) => each.ticket)).toEqual(tickets);
          expect([queue.first?.ticket, queue.size]).toEqual([tickets[0], tickets.length]);
        }
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  test("a waiter that leaves while the queue is iterated does not end the iteration", () => {
    const queue = new WaiterQueue<{ ticket: number }>();
    for (const ticket of [3, 1, 2]) queue.add({ ticket });
    const seen: number[] = [];
    for (const waiter of queue) {
      seen.push(waiter.ticket);
      queue.delete(waiter);
    }
    queue.delete({ ticket: 9 });
    expect([seen, queue.size, queue.first]).toEqual([[1, 2, 3], 0, undefined]);
  });
});
