/** A stream that is watched while it is read. It pulls one chunk for each that its reader takes. */

/** What the observer hears. Each stream ends in exactly one of the last three. */
export interface StreamObserver<T> {
  /** Returns the chunk to hand on; `undefined` hands on nothing and pulls the next one. */
  chunk(chunk: T): T | undefined;
  /** Returns a last chunk, if there is one, and when the stream may end. */
  complete(): { last?: T | undefined; ended: Promise<void> };
  /** The source failed. */
  failed(): Promise<void>;
  /** The reader stopped; the source is cancelled too. */
  cancelled(): Promise<void>;
}

/** What a reader of the source returns. */
interface Read<T> {
  readonly done: boolean;
  readonly value?: T | undefined;
}

/**
 * Not `tee`: cancelling one branch of it waits for the other one, and SDKs cancel the bodies of
 * answers that they retry.
 */
export function observedStream<T>(
  source: ReadableStream<T>,
  observer: StreamObserver<T>,
): ReadableStream<T> {
  const reader = source.getReader();
  let controller: ReadableStreamDefaultController<T>;
  // No function is made per chunk, and one promise: an `async` function would make three.
  const take = ({ done, value }: Read<T>): Promise<void> | undefined => {
    if (done) return end(controller, observer);
    const handedOn = observer.chunk(value as T);
    if (handedOn === undefined) return pull();
    controller.enqueue(handedOn);
    return undefined;
  };
  const failed = (error: unknown) => fail(error, observer);
  const pull = (): Promise<void> => reader.read().then(take, failed);
  const start = (given: ReadableStreamDefaultController<T>): void => {
    controller = given;
  };
  const cancel = async (reason: unknown): Promise<void> => {
    await Promise.all([reader.cancel(reason), observer.cancelled()]);
  };
  return new ReadableStream<T>({ start, pull, cancel }, { highWaterMark: 0 });
}

async function end<T>(
  controller: ReadableStreamDefaultController<T>,
  observer: StreamObserver<T>,
): Promise<void> {
  const { last, ended } = observer.complete();
  if (last !== undefined) controller.enqueue(last);
  // The last byte is on its way; only the end of the stream waits for the write.
  await ended;
  controller.close();
}

async function fail<T>(error: unknown, observer: StreamObserver<T>): Promise<never> {
  await observer.failed();
  throw error;
}
