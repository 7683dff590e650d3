/** The events of an HTTP middleware, and how they reach the listener of its user. */

/**
 * One decision about a request. `observed` is a request that `mode: "observe"` let through although
 * a limit refused it; `degraded` is one that was let through uncounted, because the store could not
 * answer. `commit_failed` reports a lease whose end could not be written.
 *
 * @example
 * ```ts
 * import type { HttpEvent } from 'zae-limiter/express';
 * const print = (event: HttpEvent) => console.log(event.type, event.entityId);
 * ```
 */
export interface HttpEvent {
  /** How the request was decided; `commit_failed`: its final amounts could not be written. */
  readonly type: "granted" | "refused" | "observed" | "degraded" | "unavailable" | "commit_failed";
  /** `undefined` for a request without a key. */
  readonly entityId?: string | undefined;
  /** The resource of the request; `undefined` when the request failed before it was known. */
  readonly resource?: string | undefined;
  /** The status of an answer that replaced the handler's, also of one that was only observed. */
  readonly status?: number;
  /** Set for a refusal, also for an observed one; `Infinity` when the request never fits. */
  readonly retryAfterSeconds?: number;
  /** Why the store could not answer, or why the end of a lease could not be written. */
  readonly cause?: unknown;
}

/** Hands the events of a middleware to its listener. */
export class Reporter {
  readonly #listener: ((event: HttpEvent) => void) | undefined;
  /** The process is warned once: it would be with every request. */
  #hasFailed = false;

  constructor(listener: ((event: HttpEvent) => void) | undefined) {
    this.#listener = listener;
  }

  /** Notifies the listener; without one, warns of a lease that could not be ended. */
  emit(type: HttpEvent["type"], details: Omit<HttpEvent, "type">): void {
    if (this.#listener !== undefined) this.#hand({ type, ...details }, this.#listener);
    else if (type === "commit_failed") {
      const sentence =
        `Could not end the lease of ${details.entityId} for ${details.resource}: ` +
        "its corrections are not written";
      warn("ZAEL_HTTP_COMMIT_FAILED", sentence, details.cause);
    }
  }

  /** Calls the listener of the user, which must not fail a request. */
  #hand(event: HttpEvent, listener: (event: HttpEvent) => void): void {
    try {
      listener(event);
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      warn("ZAEL_HTTP_EVENTS_FAILED", "The function `events` of an HTTP middleware threw", error);
    }
  }
}

function warn(code: string, sentence: string, cause: unknown): void {
  process.emitWarning(sentence, { code, detail: String(cause) });
}
