/** Requests through the gateway, against a proxy of the same HTTP library that only forwards. */

import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Agent, request } from "undici";
import { duel } from "../measure.mjs";
import { startServer } from "../support.mjs";

const IN_FLIGHT = 32;
const CHILD = "./children/llm-gateway.mjs";
const prompt = { model: "gpt-4o", messages: [{ role: "user", content: "word ".repeat(200) }] };
const body = JSON.stringify(prompt);
const headers = { "content-type": "application/json", authorization: "Bearer sk-bench" };

/** The gateway is a command and no entry point of the package, so it is bundled here. */
async function bundleGateway() {
  const source = (path) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
  const contents = `
    export { Gateway } from ${JSON.stringify(source("cli/gateway/gateway.ts"))};
    export { checkUpstream } from ${JSON.stringify(source("cli/gateway/upstreams.ts"))};
    export { RateLimiter } from ${JSON.stringify(source("index.ts"))};`;
  await build({
    stdin: { contents, resolveDir: source(".") },
    outfile: fileURLToPath(new URL("../dist/gateway.js", import.meta.url)),
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
}

function calling(endpoint) {
  const dispatcher = new Agent({ connections: IN_FLIGHT, pipelining: 1 });
  return {
    async loop(count) {
      for (let at = 0; at < count; at += 1) {
        const url = `${endpoint}/v1/chat/completions`;
        const answer = await request(url, { dispatcher, method: "POST", headers, body });
        await answer.body.dump();
        if (answer.statusCode !== 200) throw new Error(`The answer is ${answer.statusCode}`);
      }
    },
  };
}

async function proxying(pace) {
  await bundleGateway();
  const upstream = await startServer(CHILD, ["upstream"]);
  const port = new URL(upstream.endpoint).port;
  const ours = await startServer(CHILD, ["ours", port]);
  const bare = await startServer(CHILD, ["bare", port]);
  try {
    const contenders = [calling(ours.endpoint), calling(bare.endpoint)];
    return await duel(contenders, pace, { inFlight: IN_FLIGHT });
  } finally {
    for (const server of [ours, bare, upstream]) await server.stop();
  }
}

export const llmGateway = [
  {
    id: "llm-gateway",
    title: "plain calls through the gateway, against a proxy on node:http that only forwards",
    marks: [{ of: "ratio", least: 0.6 }],
    run: proxying,
  },
];
