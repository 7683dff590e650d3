/** The cost of `limitFetch` per call, in this process: the upstream answers without a socket. */

import { RateLimiter } from "../dist/index.js";
import { limitFetch } from "../dist/limiter/llm/index.js";
import { duel } from "../measure.mjs";

const EVENTS = 500;
const AMPLE = "1000000000/sec";
const URL = "https://upstream.test/v1/chat/completions";
const prompt = { model: "gpt-4o", messages: [{ role: "user", content: "word ".repeat(200) }] };
const usage = { prompt_tokens: 200, completion_tokens: EVENTS, total_tokens: 200 + EVENTS };
const answer = JSON.stringify({
  id: "chatcmpl-1",
  choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(100) } }],
  usage,
});

function event(choices, more = {}) {
  const body = {
    id: "chatcmpl-AbCdEfGhIjKlMnOp",
    object: "chat.completion.chunk",
    created: 1_753_000_000,
    model: "gpt-4o-2024-08-06",
    system_fingerprint: "fp_1",
    choices,
    ...more,
  };
  return Buffer.from(`data: ${JSON.stringify(body)}\n\n`);
}

const piece = event([{ index: 0, delta: { content: " word" }, finish_reason: null }]);
const last = event([], { usage });

async function plain() {
  return new Response(answer, { headers: { "content-type": "application/json" } });
}

/** Streams one event per chunk, which is the worst case. */
async function streamed() {
  let sent = 0;
  const body = new ReadableStream(
    {
      pull(controller) {
        sent += 1;
        if (sent <= EVENTS) controller.enqueue(piece);
        else {
          controller.enqueue(last);
          controller.close();
        }
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function calling(send, body) {
  const init = { method: "POST", body: JSON.stringify(body) };
  return {
    async loop(count) {
      for (let at = 0; at < count; at += 1) {
        const response = await send(URL, init);
        const reader = response.body.getReader();
        while (!(await reader.read()).done);
      }
    },
  };
}

async function added(limiter, upstream, body, pace) {
  const limited = limitFetch(limiter, { entityId: "team-a", fetch: upstream });
  const [ours, bare] = await duel([calling(limited, body), calling(upstream, body)], pace);
  return ours.cpuUs - bare.cpuUs;
}

async function fetching(pace) {
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem([`rpm:${AMPLE}`, `tpm:${AMPLE}`]);
  const callUs = await added(limiter, plain, prompt, pace);
  const streaming = { ...prompt, stream: true, stream_options: { include_usage: true } };
  const streamUs = await added(limiter, streamed, streaming, pace);
  await limiter.close();
  return { callUs, eventUs: (streamUs - callUs) / EVENTS };
}

export const llm = [
  {
    id: "llm-fetch",
    title: "CPU that limitFetch adds to a plain call, and to each event of a stream",
    marks: [
      { of: "callUs", most: 100 },
      { of: "eventUs", most: 5 },
    ],
    run: fetching,
  },
];
