/**
 * Calls that end with a signal. A signal may be shared by thousands of them, such as the one of a
 * process that shuts down: it gets one listener of ours, because Node.js takes many for a leak.
 */

const listenersOf = new WeakMap<AbortSignal, Aborts>();

class Aborts {
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<() => void>();
  readonly #tell = () => {
    for (const listener of [...this.#waiting]) listener();
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(listener: () => void): void {
    if (this.#waiting.size === 0) this.#signal.addEventListener("abort", this.#tell);
    this.#waiting.add(listener);
  }

  remove(listener: () => void): void {
    this.#waiting.delete(listener);
    if (this.#waiting.size === 0) this.#signal.removeEventListener("abort", this.#tell);
  }
}

/** Calls the listener when the signal aborts; the result removes it. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const aborts = listenersOf.get(signal) ?? new Aborts(signal);
  listenersOf.set(signal, aborts);
  aborts.add(listener);
  return () => aborts.remove(listener);
}

/** Returns the result of the work, or throws the reason of the abort, whichever comes first. */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (signal === undefined) return work();
  signal.throwIfAborted();
  let end = () => {};
  const aborted = new Promise<never>((_, reject) => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- the reason is the caller's own.
    end = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    end();
  }
}
