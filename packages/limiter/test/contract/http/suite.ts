/** Helpers that the files of this suite share. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { RateLimiterOptions } from "@zae-limiter/limiter/acquire/limiter-options.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { afterEach } from "vitest";
import type { Adapter, Handler, Seen, Served, TestOptions } from "./served.ts";

/** Refills so slowly that no test notices. */
export const SLOW = "/365day";
const OK: Handler = () => ({ body: "ok" });
export const byKey = (request: Seen) => request.header("x-key");

/** Servers and limiters of one `describe`, closed after each test. */
export class Stage {
  readonly #opened: { close(): Promise<void> }[] = [];
  readonly #adapter: Adapter;

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
    afterEach(async () => {
      for (const each of this.#opened.splice(0).reverse()) await each.close();
    });
  }

  async serve(
    options: TestOptions | readonly TestOptions[],
    handler: Handler = OK,
  ): Promise<Served> {
    return this.keep(await this.#adapter.serve(options, handler));
  }

  async limiter(options: RateLimiterOptions & { clock?: () => number } = {}): Promise<RateLimiter> {
    return this.keep(await RateLimiter.open("memory:", options));
  }

  keep<T extends { close(): Promise<void> }>(each: T): T {
    this.#opened.push(each);
    return each;
  }
}

/** Makes a request and reads its answer to the end. */
export async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** Closes the connection, and gives the server the time to notice. */
export async function hangUp(socket: Socket): Promise<void> {
  const closed = once(socket, "close");
  socket.destroy();
  await closed;
  await turns();
}

/** Lets everything that is due in this process happen. */
export async function turns(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await turn();
}

/** A promise that a test resolves. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** A server whose requests wait for tokens that do not come. */
export interface WaitingRoom {
  readonly url: string;
  /** How many requests have reached the handler. */
  handled(): number;
  /**
   * Returns whether a request is in the queue: then a call that would fit is refused for its sake.
   */
  isOccupied(): Promise<boolean>;
}

/** Serves requests for the ten tokens of a bucket that has one. */
export async function waitingRoom(stage: Stage): Promise<WaitingRoom> {
  let now = 1_700_000_000_000;
  let handled = 0;
  const limiter = await stage.limiter({ clock: () => now });
  const target = { entityId: "127.0.0.1", resource: "http", limits: ["rpm:10/min"] };
  const { limits } = target;
  await (await limiter.acquire({ ...target, consume: { rpm: 10 } })).commit();
  now += 6000;
  const options = { limiter, limits, consume: { rpm: 10 }, maxWaitSeconds: 3600 };
  const { url } = await stage.serve(options, () => {
    handled += 1;
    return { body: "ok" };
  });
  return {
    url,
    handled: () => handled,
    isOccupied: async () => {
      const decision = await limiter.tryAcquire({ ...target, consume: { rpm: 1 } });
      if (decision.granted) await decision.lease.rollback();
      return !decision.granted;
    },
  };
}
