/** Tests the events of the dashboard while it is open. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { expect, test } from "vitest";
import { Browser, ORIGIN } from "../contract/suite.ts";

/** Reads a stream of events until one has what is wanted. */
async function untilEvent(
  response: Response,
  wanted: (event: string, data: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The stream has ended: ${text}`);
    text += decoder.decode(value);
    for (const [, event = "", data = ""] of text.matchAll(/event: (\w+)\ndata: (.+)\n\n/g)) {
      const parsed = JSON.parse(data) as Record<string, unknown>;
      if (!wanted(event, parsed)) continue;
      await reader.cancel();
      return parsed;
    }
  }
}

test("refusals of a limiter in the same process are sent while the page is open", async () => {
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(["rpm:1"]);
  const target = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
  const browser = new Browser(limiter.repository, { limiter });
  const closing = new AbortController();
  const request = new Request(`${ORIGIN}/api/events`, { signal: closing.signal });
  const response = await browser.handler(request);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  await limiter.tryAcquire(target);
  await limiter.tryAcquire(target);
  const live = await untilEvent(response, (event, data) => event === "live" && data.refused === 1);
  expect(live).toMatchObject({
    granted: 1,
    refused: 1,
    refusals: [{ entityId: "key-1", resource: "gpt-4", limitName: "rpm", ancestorId: null }],
  });
  await limiter.close();
});

test("a listener that is added later gets calls like the option, until it is removed", async () => {
  const heard: string[] = [];
  const limiter = await RateLimiter.open("memory:", {
    events: ({ type }) => {
      if (type !== "call") heard.push(type);
    },
  });
  await limiter.repository.limits.setSystem(["rpm:10"]);
  const target = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 6 } };
  const browser = new Browser(limiter.repository, { limiter });
  const closing = new AbortController();
  const request = new Request(`${ORIGIN}/api/events`, { signal: closing.signal });
  const response = await browser.handler(request);
  await limiter.tryAcquire(target);
  await untilEvent(response, (event, data) => event === "live" && data.granted === 1);
  closing.abort();
  await limiter.tryAcquire(target);
  expect(heard).toEqual(["acquired", "rejected"]);
  const again = await browser.handler(new Request(`${ORIGIN}/api/events`));
  const live = await untilEvent(again, (event) => event === "live");
  expect(live).toMatchObject({ granted: 1, refused: 0 });
  await limiter.close();
});
