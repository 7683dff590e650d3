/** Counts the calls of a limiter while a page is open, and keeps its last refusals. */

import type { LimiterEvent } from "@zae-limiter/limiter/acquire/events.ts";
import { hear } from "@zae-limiter/limiter/acquire/hear.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import type { LiveJson, RefusalJson } from "./wire.ts";

const REFUSALS_MAX = 30;

export class LiveCalls {
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;
  readonly #refusals: RefusalJson[] = [];
  #granted = 0;
  #refused = 0;
  #degraded = 0;
  #watchers = 0;
  #stop: (() => void) | undefined;

  constructor(limiter: RateLimiter, clock: Clock) {
    this.#limiter = limiter;
    this.#clock = clock;
  }

  /** Listens until the result is called as often as this was. */
  watch(): () => void {
    this.#watchers += 1;
    this.#stop ??= hear(this.#limiter, (event) => this.#hear(event));
    return () => {
      this.#watchers -= 1;
      if (this.#watchers > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  get state(): LiveJson {
    return {
      atMs: this.#clock(),
      granted: this.#granted,
      refused: this.#refused,
      degraded: this.#degraded,
      refusals: [...this.#refusals],
    };
  }

  #hear(event: LimiterEvent): void {
    if (event.type === "acquired") this.#granted += 1;
    else if (event.type === "degraded") this.#degraded += 1;
    else if (event.type === "rejected") {
      this.#refused += 1;
      this.#refusals.unshift(refusalOf(event, this.#clock()));
      this.#refusals.length = Math.min(this.#refusals.length, REFUSALS_MAX);
    }
  }
}

function refusalOf(event: LimiterEvent & { type: "rejected" }, atMs: number): RefusalJson {
  const { entityId, resource, refusedBy, retryAfterSeconds: seconds } = event;
  return {
    atMs,
    entityId,
    resource,
    limitName: refusedBy.limitName,
    ancestorId: refusedBy.level === 0 ? null : refusedBy.entityId,
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : null,
  };
}
