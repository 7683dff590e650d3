/** A worker in a process of its own: its orders and its reports. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { THIS_PROCESS } from "./local-fleet.ts";
import type { LoadChange } from "./model.ts";
import type { Plan, WorkerPlace } from "./plan.ts";
import { loadScenario } from "./scenario-file.ts";
import type { SliceWire } from "./slice.ts";
import { Worker } from "./worker.ts";

export interface StoreAddress {
  readonly url: string;
  readonly namespace: string;
  readonly timeoutMs: number;
}

export type Order =
  | {
      readonly type: "prepare";
      readonly file: string;
      readonly store: StoreAddress;
      readonly plan: Plan;
      readonly place: WorkerPlace;
    }
  /** All workers are ready. */
  | { readonly type: "begin" }
  | { readonly type: "change"; readonly change: LoadChange }
  | { readonly type: "stop" };

export type Report =
  | { readonly type: "ready" }
  | { readonly type: "slice"; readonly slice: SliceWire }
  | { readonly type: "done" }
  | { readonly type: "failed"; readonly message: string };

/** The part of `process` that carries orders and reports. */
interface Channel {
  send(report: Report): void;
  onOrder(listener: (order: Order) => void): void;
  /** Adds a listener for the end of the process that gives the orders. */
  onLeft(listener: () => void): void;
}

/** Follows orders until the run has ended. */
export async function serveWorker(channel: Channel): Promise<void> {
  const stopped = new AbortController();
  let worker: Worker | undefined;
  let change: LoadChange = {};
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const prepared = new Promise<Extract<Order, { type: "prepare" }>>((resolve) => {
    channel.onOrder((order) => {
      if (order.type === "prepare") resolve(order);
      else if (order.type === "begin") begin();
      else if (order.type === "change") {
        change = { ...change, ...order.change };
        worker?.change(order.change);
      } else stopped.abort();
    });
  });
  channel.onLeft(() => {
    stopped.abort();
    begin();
  });
  let limiter: RateLimiter | undefined;
  try {
    const { file, store, plan, place } = await prepared;
    const load = await loadScenario(file);
    const { url, ...options } = store;
    limiter = await RateLimiter.open(url, options);
    channel.send({ type: "ready" });
    await begun;
    worker = new Worker({
      load,
      limiter,
      plan,
      place,
      ...THIS_PROCESS,
      signal: stopped.signal,
      onSlice: (slice) => channel.send({ type: "slice", slice: slice.toWire() }),
    });
    worker.change(change);
    await worker.run();
    channel.send({ type: "done" });
  } catch (error) {
    channel.send({
      type: "failed",
      message: error instanceof Error ? error.message : String(error),
    });
  } finally {
    await limiter?.close();
  }
}
