/** The deadline of a call: whatever happens on the network, the call is over by then. */

/** Thrown when an attempt took too long; what it did is unknown once it was sent. */
export class AttemptTimeout extends Error {
  override readonly name = "AttemptTimeout";
}

/** Attempts shorter than this are not worth it: the rest goes to one last attempt. */
const ATTEMPT_MS_MIN = 250;

/** A write that starts with less time than this would most likely end with unknown outcome. */
const LAST_ATTEMPT_MS_MIN = 100;

/** Real time, also in tests with a virtual clock: sockets know no other. */
export class Deadline {
  readonly timeoutMs: number;
  /** What to do when the key range of a request is throttled. */
  readonly hotKey: "repeat" | "raise";
  #endsAt: number;

  constructor(timeoutMs: number, hotKey: "repeat" | "raise" = "repeat") {
    this.timeoutMs = timeoutMs;
    this.hotKey = hotKey;
    this.#endsAt = performance.now() + timeoutMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#endsAt - performance.now());
  }

  /** Milliseconds since the call started. */
  get passedMs(): number {
    return this.timeoutMs - this.leftMs;
  }

  /** Restarts the time, for work in several steps that has made one. */
  restart(): void {
    this.#endsAt = performance.now() + this.timeoutMs;
  }

  /** Whether another attempt is worth it after a pause. */
  allowsAnother(pauseMs: number): boolean {
    return this.leftMs - pauseMs >= Math.min(LAST_ATTEMPT_MS_MIN, this.timeoutMs / 4);
  }

  /** How long one attempt may take: half of what is left, where another could follow. */
  attemptMs(repeatable: boolean): number {
    const { leftMs } = this;
    return repeatable && leftMs > 2 * ATTEMPT_MS_MIN ? leftMs / 2 : leftMs;
  }
}

/** Calls back when the time is over, unless it was cleared before. */
export function alarm(timeoutMs: number, ring: () => void): NodeJS.Timeout {
  return setTimeout(ring, timeoutMs);
}

/**
 * Runs `work` for at most `timeoutMs`. The signal stops what can be stopped, and the race ends what
 * cannot, such as an answer that comes byte by byte.
 */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AttemptTimeout(`no answer within ${Math.round(timeoutMs)} ms`));
      abort.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([work(abort.signal), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
