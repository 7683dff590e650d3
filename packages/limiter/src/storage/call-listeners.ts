/** Listeners for requests to a store; they can be added and removed while it is open. */

import { channel } from "node:diagnostics_channel";
import { unbreakable } from "../base/listener.ts";
import type { CallListener, ItemStore, StoreCall } from "./item-store.ts";

/** Carries `{ call }`, a `StoreCall`, for every request; see docs/reference/events.md. */
const callChannel = channel("zae-limiter:call");

export class CallListeners {
  readonly #listeners = new Set<CallListener>();

  constructor(first?: CallListener) {
    if (first !== undefined) this.add(first);
  }

  /** True: requests need not ask for their consumed capacity, nor estimate it. */
  get isEmpty(): boolean {
    return this.#listeners.size === 0 && !callChannel.hasSubscribers;
  }

  /** Adds a listener; the result removes it. */
  add(listener: CallListener): () => void {
    const told = unbreakable("onCall", listener);
    this.#listeners.add(told);
    return () => void this.#listeners.delete(told);
  }

  tell(call: StoreCall): void {
    for (const listener of this.#listeners) listener(call);
    if (callChannel.hasSubscribers) callChannel.publish({ call });
  }
}

/** Listens to a store, if it reports its requests: not every store does. */
export function listenTo(store: ItemStore, listener: CallListener): () => void {
  return store.listen?.(listener) ?? (() => {});
}

/** Returns the report of a request to a store that bills nothing. */
export function freeCall(operation: string): StoreCall {
  return { operation, readUnits: 0, writeUnits: 0, indexUnits: 0, estimated: false };
}
