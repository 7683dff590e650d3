/** A watched response: its end is noticed once, and the handler feels the speed of the client. */

import { watchEnd } from "@zae-limiter/limiter/http/watched-body.ts";
import { expect, test } from "vitest";

/** A body of three chunks that counts how often it is asked for one. */
function source() {
  const seen = { pulled: 0, cancelled: undefined as unknown };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        seen.pulled += 1;
        if (seen.pulled > 3) controller.close();
        else controller.enqueue(new Uint8Array([seen.pulled]));
      },
      cancel(reason) {
        seen.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, seen };
}

async function watched(body: ReadableStream | null, onEnd?: (aborted: boolean) => Promise<void>) {
  const client = new AbortController();
  const ends: boolean[] = [];
  const response = await watchEnd(new Response(body), client.signal, async (aborted) => {
    ends.push(aborted);
    await onEnd?.(aborted);
  });
  return { client, ends, response };
}

const turns = () => new Promise((resolve) => setImmediate(resolve));

test("a body is pulled only as fast as the client reads", async () => {
  const { body, seen } = source();
  const { ends, response } = await watched(body);
  await turns();
  expect(seen.pulled).toBe(0);
  const reader = response.body?.getReader();
  expect(await reader?.read()).toEqual({ done: false, value: new Uint8Array([1]) });
  await turns();
  expect(seen.pulled).toBe(1);
  expect(ends).toEqual([]);
});

test("a body ends after its end was written, because a Lambda is frozen then", async () => {
  let written: () => void = () => undefined;
  const writing = new Promise<void>((resolve) => {
    written = resolve;
  });
  const { ends, response } = await watched(source().body, () => writing);
  let isRead = false;
  const text = response.text().then(() => {
    isRead = true;
  });
  await turns();
  expect([ends, isRead]).toEqual([[false], false]);
  written();
  await text;
  expect(ends).toEqual([false]);
});

test("a reader that stops is a hang-up, and the handler's stream hears of it", async () => {
  const { body, seen } = source();
  const { ends, response } = await watched(body);
  await response.body?.cancel("enough");
  expect([ends, seen.cancelled]).toEqual([[true], "enough"]);
});

test("a client that goes away is a hang-up, though nothing reads the body any more", async () => {
  const { client, ends, response } = await watched(source().body);
  await response.body?.getReader().read();
  client.abort();
  await turns();
  expect(ends).toEqual([true]);
});

test("a response without a body has ended at once", async () => {
  const { ends } = await watched(null);
  expect(ends).toEqual([false]);
});

test("a body that fails is a hang-up, and the reader gets the error", async () => {
  const failing = new ReadableStream({
    pull(controller) {
      controller.error(new Error("upstream"));
    },
  });
  const { ends, response } = await watched(failing);
  await expect(response.text()).rejects.toThrow("upstream");
  expect(ends).toEqual([true]);
});
