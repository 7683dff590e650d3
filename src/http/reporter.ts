/** Hands the events of a middleware to the listener of its user. */

import type { HttpEvent } from "./events.ts";

export class Reporter {
  readonly #listener: ((event: HttpEvent) => void) | undefined;
  /** The process is warned once: it would be with every request. */
  #hasFailed = false;

  constructor(listener: ((event: HttpEvent) => void) | undefined) {
    this.#listener = listener;
  }

  /** Tells the listener; without one, warns of a lease that could not be ended. */
  tell(type: HttpEvent["type"], told: Omit<HttpEvent, "type">): void {
    if (this.#listener !== undefined) this.#hand({ type, ...told }, this.#listener);
    else if (type === "commit_failed") {
      const sentence =
        `Could not end the lease of ${told.entityId} for ${told.resource}: ` +
        "its corrections are not written";
      warn("ZAEL_HTTP_COMMIT_FAILED", sentence, told.cause);
    }
  }

  /** The user's listener must not fail a request. */
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
