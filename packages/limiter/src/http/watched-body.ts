/** A response whose end is noticed, for frameworks that hand over a web-standard `Response`. */

import { share } from "./shared-listener.ts";

/**
 * Calls `onEnd` once: after the last byte was read, or with `aborted` when the reader stopped or
 * `signal` says that the client has gone. A server may never read the body for a client that has.
 *
 * The body ends after `onEnd`: a Lambda function is frozen as soon as its response is complete, and
 * would write the end of the lease when it is called the next time, or never.
 */
export async function watchEnd(
  response: Response,
  signal: AbortSignal,
  onEnd: (aborted: boolean) => Promise<void>,
): Promise<Response> {
  if (response.body === null || signal.aborted) {
    await onEnd(signal.aborted);
    return response;
  }
  let ended = false;
  const end = async (aborted: boolean) => {
    if (ended) return;
    ended = true;
    leave();
    await onEnd(aborted);
  };
  const leave = share(
    signal,
    (all) => signal.addEventListener("abort", all),
    () => void end(true),
  );
  const reader = response.body.getReader();
  // Pulls one chunk for each that the client takes, so the handler feels the client's speed.
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          await end(false);
          controller.close();
        } catch (error) {
          await end(true);
          controller.error(error);
        }
      },
      async cancel(reason) {
        await Promise.all([end(true), reader.cancel(reason)]);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
