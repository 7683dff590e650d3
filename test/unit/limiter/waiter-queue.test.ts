import fc from "fast-check";
import { expect, test } from "vitest";
import { WaiterQueue } from "../../../src/limiter/waiter-queue.ts";

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

test("a waiter that leaves while the queue is walked through ends nothing", () => {
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
