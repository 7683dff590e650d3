/** Server-sent events: the overview and the live calls, as long as the page is open. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

const INTERVAL_MS = 1000;
/** Proxies close connections that say nothing for long. */
const SILENT_TICKS_MAX = 15;

/** Returns data to send to pages, under the name of an event. */
export type Feed = () => Promise<readonly [event: string, data: unknown]>;

/** Returns a response that reads the feeds every second until the page is closed. */
export function eventsResponse(
  feeds: readonly Feed[],
  options: { timer: Timer; signal: AbortSignal; onClose: () => void },
): Response {
  const { timer, signal, onClose } = options;
  const canceled = new AbortController();
  const ended = AbortSignal.any([signal, canceled.signal]);
  const encoder = new TextEncoder();
  const news = newsOf(feeds);
  const send = async (sink: ReadableStreamDefaultController<Uint8Array>) => {
    while (!ended.aborted) {
      const text = await news();
      if (text !== "" && !ended.aborted) sink.enqueue(encoder.encode(text));
      await timer.sleep(INTERVAL_MS, ended, true);
    }
    if (!canceled.signal.aborted) sink.close();
  };
  const body = new ReadableStream<Uint8Array>({
    start: (sink) => {
      void send(sink).finally(onClose);
    },
    cancel: () => canceled.abort(),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Returns the data that changed since the last time, in the format of server-sent events. */
function newsOf(feeds: readonly Feed[]): () => Promise<string> {
  const sent = new Map<string, string>();
  let silentTicks = 0;
  return async () => {
    // A store that does not answer for a moment must not end the stream.
    const found = await Promise.allSettled(feeds.map((feed) => feed()));
    let text = "";
    for (const result of found) {
      if (result.status === "rejected") continue;
      const [event, data] = result.value;
      const line = JSON.stringify(data);
      if (sent.get(event) === line) continue;
      sent.set(event, line);
      text += `event: ${event}\ndata: ${line}\n\n`;
    }
    silentTicks = text === "" ? silentTicks + 1 : 0;
    if (silentTicks < SILENT_TICKS_MAX) return text;
    silentTicks = 0;
    return ": still here\n\n";
  };
}
