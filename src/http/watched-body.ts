/** A response whose end is noticed, for frameworks that hand over a web-standard `Response`. */

/** Calls `onEnd` once: after the last byte was read, or with `aborted` when the reader stopped. */
export function watchEnd(response: Response, onEnd: (aborted: boolean) => void): Response {
  if (response.body === null) {
    onEnd(false);
    return response;
  }
  let ended = false;
  const end = (aborted: boolean) => {
    if (ended) return;
    ended = true;
    onEnd(aborted);
  };
  const reader = response.body.getReader();
  // Pulls one chunk for each that the client takes, so the handler feels the client's speed.
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          end(false);
          controller.close();
        } catch (error) {
          end(true);
          controller.error(error);
        }
      },
      async cancel(reason) {
        end(true);
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
