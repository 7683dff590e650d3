/**
 * Work in steps, each of which is started by an event, by a value that the store returns, or by the
 * step before it. A value that is there at once costs no promise.
 */

import type { EventEmitter } from "node:events";
import { ENDED } from "@zae-limiter/limiter/acquire/lease/lease-holdings.ts";

export abstract class Steps {
  #waiting = 0;

  /** Whether a step waits for the store. */
  protected get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Called with the error of a step: an event has no caller that could get it. */
  protected abstract failed(error: unknown): void;

  /** Called when a step no longer waits for the store. */
  protected abstract waited(): void;

  /** Does a step whenever an event comes. */
  protected on<T>(emitter: EventEmitter, event: string, step: (value: T) => void): void {
    emitter.on(event, (value: T) => this.attempt(step, value));
  }

  protected attempt<T>(step: (value: T) => void, value: T): void {
    try {
      step.call(this, value);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Does a step with a value, at once or when it is there. */
  protected with<T>(value: T | Promise<T>, step: (value: T) => void): void {
    if (!(value instanceof Promise) || value === ENDED) {
      step.call(this, value as T);
      return;
    }
    this.#waiting += 1;
    void value
      .then((known) => step.call(this, known))
      .catch((error) => this.failed(error))
      .finally(() => {
        this.#waiting -= 1;
        this.waited();
      });
  }
}
