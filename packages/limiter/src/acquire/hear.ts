/** Listens to a limiter that is already in use. */

import { unbreakable } from "../base/listener.ts";
import { eventChannel } from "../repository/event-channel.ts";
import type { LimiterEvent } from "./events.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** What the channel carries. */
interface Message {
  readonly limiter?: object;
  readonly namespaceId?: string;
  readonly event: LimiterEvent;
}

/**
 * Tells a listener of the limiter's calls, and of splits and warnings in its namespace; the result
 * ends it. A listener that throws changes nothing.
 */
export function hear(limiter: RateLimiter, listener: (event: LimiterEvent) => void): () => void {
  const told = unbreakable("listener", listener);
  const { namespaceId } = limiter.repository;
  const onMessage = (message: unknown) => {
    const { limiter: from, namespaceId: place, event } = message as Message;
    if (from === limiter || (from === undefined && place === namespaceId)) told(event);
  };
  eventChannel.subscribe(onMessage);
  return () => void eventChannel.unsubscribe(onMessage);
}
