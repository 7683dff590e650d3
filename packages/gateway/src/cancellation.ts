/**
 * Happens once, and calls what waits for it. An AbortController does the same, and two of them cost
 * a call 15 us, as much as a fifth of a proxy that only forwards.
 */
export class Cancellation {
  #isCancelled = false;
  #listeners: (() => void)[] | undefined;
  #controller: AbortController | undefined;

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** Returns a signal for APIs that take nothing else. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isCancelled) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Calls the listener when this is cancelled; at once where it is already. */
  onCancel(listener: () => void): void {
    if (this.#isCancelled) listener();
    else if (this.#listeners === undefined) this.#listeners = [listener];
    else this.#listeners.push(listener);
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#controller?.abort();
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
  }
}
