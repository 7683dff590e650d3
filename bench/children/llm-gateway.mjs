/** A server for one contender: KIND upstream, ours or bare; the last two forward to PORT. */

import { Agent, createServer, request as send } from "node:http";

const [kind, port] = process.argv.slice(2);
const usage = { prompt_tokens: 200, completion_tokens: 100, total_tokens: 300 };
const message = { role: "assistant", content: "word ".repeat(100) };
const answer = JSON.stringify({ id: "chatcmpl-1", choices: [{ index: 0, message }], usage });
const LIMITS = ["rpm:1000000000/sec", "tpm:1000000000/sec"];

function listen(server) {
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
}

function upstream() {
  const headers = { "content-type": "application/json", "content-length": answer.length };
  listen(
    createServer((request, response) => {
      request.resume();
      request.once("end", () => response.writeHead(200, headers).end(answer));
    }),
  );
}

/** Forwards and does nothing else, with the same client and server. */
function bare() {
  const agent = new Agent({ keepAlive: true });
  listen(
    createServer((request, response) => {
      const { method, url: path, headers } = request;
      const forwarded = send({ hostname: "127.0.0.1", port, method, path, headers, agent });
      forwarded.once("response", (answered) => {
        response.writeHead(answered.statusCode, answered.headers);
        answered.pipe(response);
      });
      request.pipe(forwarded);
    }),
  );
}

async function ours() {
  const { Gateway, RateLimiter, checkUpstream } = await import("../dist/gateway.js");
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(LIMITS);
  const gateway = await Gateway.start({
    limiter,
    upstreams: [checkUpstream({ url: `http://127.0.0.1:${port}/v1`, models: ["*"] }, {}, true)],
    host: "127.0.0.1",
    port: 0,
    isOpen: true,
    maxWaitSeconds: 0,
    bodyBytesMax: 1_000_000,
    timeoutMs: 60_000,
    unknownModels: "other",
    allowPaths: [],
    background: "refuse",
    readOnMax: 10,
    tell: () => {},
  });
  process.send(Number(new URL(gateway.url).port));
}

await { upstream, bare, ours }[kind]();
