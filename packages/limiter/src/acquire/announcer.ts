/** Reports what happens to a limiter's calls, to its option `events` and to the channels. */

import { channel } from "node:diagnostics_channel";
import { type Random, randomToken } from "../base/random.ts";
import type { Timer } from "../base/time.ts";
import type { Leg } from "../buckets/leg.ts";
import { eventChannel } from "../repository/event-channel.ts";
import type { AcquireRequest } from "./acquire-request.ts";
import type { LimiterEvent } from "./events.ts";
import { ObservedCall } from "./observed-call.ts";

/** Carries an `ObservedCall`, before its acquire starts. A subscriber may set `within`. */
const acquireStart = channel("zae-limiter:acquire:start");
/** Carries the same object once the acquire is decided, or has failed. */
const acquireEnd = channel("zae-limiter:acquire:end");

export interface AnnouncerOptions {
  /** The limiter, so that a subscriber can tell one from another. */
  readonly limiter: object;
  readonly namespaceId: string;
  readonly timer: Timer;
  readonly random: Random;
  readonly events: ((event: LimiterEvent) => void) | undefined;
}

/** Apart from `isHeard`, so that both are short enough to be compiled into every acquire. */
function isWatched(): boolean {
  return eventChannel.hasSubscribers || acquireStart.hasSubscribers;
}

const NOTHING: AcquireRequest = { entityId: "", resource: "", consume: {} };

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #events: ((event: LimiterEvent) => void) | undefined;
  /** Makes acquire ids differ between processes; drawn when the first id is needed. */
  #prefix: string | undefined;
  #count = 0;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    this.#events = options.events;
  }

  /** Whether an event would reach a listener. Nothing is computed for one that would not. */
  get isHeard(): boolean {
    return this.#events !== undefined || isWatched();
  }

  tell(event: LimiterEvent): void {
    this.#events?.(event);
    this.publish(event);
  }

  /** Reports a leg that is refunded because the acquire was not granted. */
  refunded({ entityId, resource, config, amountsMilli }: Leg): void {
    if (!this.isHeard) return;
    const amounts = Object.fromEntries(
      config.limits.map(({ name }, at) => [name, (amountsMilli[at] ?? 0) / 1000]),
    );
    const acquireId = undefined;
    this.tell({ type: "restored", acquireId, entityId, resource, amounts, reason: "not_granted" });
  }

  /** Publishes an event on the channel alone. */
  publish(event: LimiterEvent): void {
    if (!eventChannel.hasSubscribers) return;
    const { limiter, namespaceId } = this.#options;
    eventChannel.publish({ limiter, namespaceId, event });
  }

  /** Starts an acquire that is listened to; of a lease that consumes more, with the lease's id. */
  begin(request: AcquireRequest, acquireId = this.#newId()): ObservedCall {
    const { limiter, timer } = this.#options;
    // A request that is no object is refused by the acquire itself.
    const asked = (request as AcquireRequest | null | undefined) ?? NOTHING;
    const call = new ObservedCall(this, limiter, acquireId, asked, timer);
    if (acquireStart.hasSubscribers) acquireStart.publish(call);
    return call;
  }

  end(call: ObservedCall): void {
    if (acquireEnd.hasSubscribers) acquireEnd.publish(call);
  }

  #newId(): string {
    this.#prefix ??= randomToken(this.#options.random, 6);
    this.#count += 1;
    return `${this.#prefix}-${this.#count.toString(36)}`;
  }
}
