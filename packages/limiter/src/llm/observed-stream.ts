/** Streams that are observed while they are read: one chunk is pulled for each that is taken. */

/** Observes a stream, which ends in exactly one of the last three methods. */
export interface StreamObserver<T> {
  /** Returns the chunk to hand on; `undefined` hands on nothing and pulls the next one. */
  chunk(chunk: T): T | undefined;
  /** Ends a stream that is complete; returns a last chunk, if there is one. */
  complete(): Promise<T | undefined>;
  /** Ends a stream whose source failed. */
  failed(): Promise<void>;
  /** Ends a stream whose reader stopped; the source is cancelled too. */
  cancelled(): Promise<void>;
}

/**
 * Returns a stream of the same chunks. It is not `tee`: cancelling one branch of that waits for the
 * other one, and SDKs cancel the bodies of answers that they retry.
 */
export function observedStream<T>(
  source: ReadableStream<T>,
  observer: StreamObserver<T>,
): ReadableStream<T> {
  const reader = source.getReader();
  async function pull(controller: ReadableStreamDefaultController<T>): Promise<void> {
    for (;;) {
      let read: Awaited<ReturnType<typeof reader.read>>;
      try {
        read = await reader.read();
      } catch (error) {
        await observer.failed();
        throw error;
      }
      if (read.done) return end(controller);
      const chunk = observer.chunk(read.value);
      if (chunk !== undefined) return controller.enqueue(chunk);
    }
  }
  async function end(controller: ReadableStreamDefaultController<T>): Promise<void> {
    const last = await observer.complete();
    if (last !== undefined) controller.enqueue(last);
    controller.close();
  }
  async function cancel(reason: unknown): Promise<void> {
    await Promise.all([reader.cancel(reason), observer.cancelled()]);
  }
  return new ReadableStream<T>({ pull, cancel }, { highWaterMark: 0 });
}
