/** Reports what happens to a limiter's calls, to its option `events` and to the channels. */

import { channel } from "node:diagnostics_channel";
import { unbreakable } from "../base/listener.ts";
import { type Random, randomToken } from "../base/random.ts";
import type { Timer } from "../base/time.ts";
import type { Leg } from "../buckets/leg.ts";
import { eventChannel } from "../repository/event-channel.ts";
import type { AcquireRequest } from "./acquire-request.ts";
import type { LeaseWarning, LimiterEvent, LimiterWarning, StoreWarning } from "./events.ts";
import { ObservedCall } from "./observed-call.ts";

/** Carries an `ObservedCall`, before its acquire starts. A subscriber may set `within`. */
const acquireStart = channel("zae-limiter:acquire:start");
/** Carries the same object once the acquire is decided, or has failed. */
const acquireEnd = channel("zae-limiter:acquire:end");

export interface AnnouncerOptions {
  /** The limiter, so that a subscriber can distinguish limiters. */
  readonly limiter: object;
  readonly timer: Timer;
  readonly random: Random;
  readonly events: ((event: LimiterEvent) => void) | undefined;
  readonly onWarning: ((warning: LimiterWarning) => void) | undefined;
}

// Not inside `hasListeners`, so that both are short enough to be inlined into every acquire.
function isWatched(): boolean {
  return eventChannel.hasSubscribers || acquireStart.hasSubscribers;
}

/** Warnings of which each one counts; of the others, the process gets one of each kind. */
const REPEATED: ReadonlySet<LimiterWarning["kind"]> = new Set([
  "adjustment_failed",
  "slot_overdue",
  "store_unreached",
]);

const NOTHING: AcquireRequest = { entityId: "", resource: "", consume: {} };

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #events: ((event: LimiterEvent) => void) | undefined;
  /** `undefined` as long as the store was not reached. */
  #namespaceId: string | undefined;
  /** Makes acquire ids differ between processes; drawn when the first id is needed. */
  #prefix: string | undefined;
  #count = 0;
  /** Kinds of warnings that a caller may cause with every call: the process gets each kind once. */
  readonly #warned = new Set<LimiterWarning["kind"]>();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    this.#events = options.events;
  }

  /** Whether an event would reach a listener. Nothing is computed for one that would not. */
  get hasListeners(): boolean {
    return this.#events !== undefined || isWatched();
  }

  /** Learns the namespace, once the store has answered. */
  reached(namespaceId: string): void {
    this.#namespaceId = namespaceId;
  }

  emit(event: LimiterEvent): void {
    this.#events?.(event);
    this.publish(event);
  }

  /** Reports a leg that is refunded because the acquire was not granted. */
  refunded({ entityId, resource, config, amountsMilli }: Leg): void {
    if (!this.hasListeners) return;
    const amounts = Object.fromEntries(
      config.limits.map(({ name }, at) => [name, (amountsMilli[at] ?? 0) / 1000]),
    );
    const acquireId = undefined;
    this.emit({ type: "restored", acquireId, entityId, resource, amounts, reason: "not_granted" });
  }

  /** Publishes an event on the channel alone. */
  publish(event: LimiterEvent): void {
    if (!eventChannel.hasSubscribers) return;
    const { limiter } = this.#options;
    eventChannel.publish({ limiter, namespaceId: this.#namespaceId, event });
  }

  /** Passes a warning of the limiter to its listener, or else to the process. */
  warn(warning: LeaseWarning | StoreWarning): void {
    this.publish({ type: "warning", warning });
    const { onWarning } = this.#options;
    if (onWarning !== undefined) {
      onWarning(warning);
      return;
    }
    if (this.#warned.has(warning.kind)) return;
    if (!REPEATED.has(warning.kind)) this.#warned.add(warning.kind);
    process.emitWarning(messageOf(warning), {
      code: `ZAEL_${warning.kind.toUpperCase()}`,
      detail: detailOf(warning),
    });
  }

  /** Starts an acquire that has listeners; a lease that consumes more passes its own id. */
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

function messageOf(warning: LeaseWarning | StoreWarning): string {
  if (warning.kind === "store_unreached") {
    return `The store was not reached yet, and calls are not counted: ${warning.cause.message}`;
  }
  const { kind, entityId, resource } = warning;
  if (kind === "adjustment_failed") {
    return `Could not write an adjustment of ${entityId} for ${resource}: its bucket has too many tokens`;
  }
  if (kind === "slot_overdue") {
    return `A lease of ${entityId} for ${resource} held slots for longer than maxHoldSeconds: ${warning.slots} were given back`;
  }
  const { operation, limitName } = warning;
  const call = `${operation}({ ${limitName} }) of ${entityId} for ${resource}`;
  return kind === "amount_missing"
    ? `${call} got no amount: the estimate stays consumed`
    : `${call} got an amount below zero: the lease consumes 0`;
}

function detailOf(warning: LeaseWarning | StoreWarning): string {
  if ("cause" in warning) return String(warning.cause);
  if (warning.kind === "slot_overdue") return "Its call may still run: end leases by run";
  const more = "Further warnings of this kind are not printed; pass onWarning to get all of them";
  return `The amount is ${String(warning.amount)}. ${more}`;
}

/** A message of the channel of events. */
interface Message {
  readonly limiter?: object;
  readonly namespaceId?: string;
  readonly event: LimiterEvent;
}

/**
 * Calls a listener with the events of a limiter that is already in use, and with splits and
 * warnings in its namespace; the result ends it. A listener that throws changes nothing.
 */
export function subscribe(
  limiter: { readonly repository: { readonly namespaceId: string } },
  listener: (event: LimiterEvent) => void,
): () => void {
  const notify = unbreakable("listener", listener);
  const { namespaceId } = limiter.repository;
  const onMessage = (message: unknown) => {
    const { limiter: from, namespaceId: place, event } = message as Message;
    if (from === limiter || (from === undefined && place === namespaceId)) notify(event);
  };
  eventChannel.subscribe(onMessage);
  return () => void eventChannel.unsubscribe(onMessage);
}
