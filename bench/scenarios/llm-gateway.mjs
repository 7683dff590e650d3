/** Requests through the gateway, against a proxy of the same HTTP library that only forwards. */

import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Agent, request } from "undici";
import { duel, median, timed } from "../measure.mjs";
import { startServer } from "../support.mjs";

const IN_FLIGHT = 32;
const CHILD = "./children/llm-gateway.mjs";
/**
 * How the engine has compiled a server, and where its heap came to lie, holds for the life of its
 * process, and makes it faster or slower by up to a third. So there are several of each.
 */
const PAIRS = 3;
/** The machine becomes slower and faster within seconds: many short rounds rather than few. */
const PACE = { rounds: 15, roundMs: 100, samples: 1000 };
/** Requests until a server has compiled everything, as one that runs for hours has. */
const WARM_UP_REQUESTS = 15_000;
const prompt = { model: "gpt-4o", messages: [{ role: "user", content: "word ".repeat(200) }] };
const body = JSON.stringify(prompt);
const headers = { "content-type": "application/json", authorization: "Bearer sk-bench" };

/** Bundles the gateway, which is a command and no entry point of the package. */
async function bundleGateway() {
  const packages = fileURLToPath(new URL("../../packages", import.meta.url));
  const rooms = ["gateway", "limiter"].map((room) => [
    `@zae-limiter/${room}`,
    `${packages}/${room}/src`,
  ]);
  const contents = `
    export { Gateway } from "@zae-limiter/gateway/gateway.ts";
    export { checkUpstream } from "@zae-limiter/gateway/upstreams.ts";
    export { RateLimiter } from "@zae-limiter/limiter/index.ts";`;
  await build({
    stdin: { contents, resolveDir: packages },
    alias: Object.fromEntries(rooms),
    outfile: fileURLToPath(new URL("../dist/gateway.js", import.meta.url)),
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
}

/** Starts a proxy in a new process, which counts the requests that it gets. */
async function proxy(kind, port) {
  const { endpoint, cpuUs, stop } = await startServer(CHILD, [kind, port]);
  const dispatcher = new Agent({ connections: IN_FLIGHT, pipelining: 1 });
  const started = {
    cpuUs,
    stop,
    requests: 0,
    async loop(count) {
      started.requests += count;
      for (let at = 0; at < count; at += 1) {
        const url = `${endpoint}/v1/chat/completions`;
        const answer = await request(url, { dispatcher, method: "POST", headers, body });
        await answer.body.dump();
        if (answer.statusCode !== 200) throw new Error(`The answer is ${answer.statusCode}`);
      }
    },
  };
  return started;
}

async function proxying(pace) {
  await bundleGateway();
  const isQuick = pace.rounds <= 3;
  const upstream = await startServer(CHILD, ["upstream"]);
  const { port } = new URL(upstream.endpoint);
  const proxies = [];
  try {
    for (let at = 0; at < (isQuick ? 1 : PAIRS); at += 1) {
      proxies.push(await proxy("ours", port), await proxy("bare", port));
    }
    if (!isQuick) for (const each of proxies) await timed(each, WARM_UP_REQUESTS, IN_FLIGHT);
    const before = proxies.map((each) => ({ cpuUs: each.cpuUs(), requests: each.requests }));
    const results = await duel(proxies, isQuick ? pace : { ...pace, ...PACE }, {
      inFlight: IN_FLIGHT,
    });
    const all = proxies.map((each, at) => ({
      ...results[at],
      serverUs: (each.cpuUs() - before[at].cpuUs) / (each.requests - before[at].requests),
    }));
    return [0, 1].map((side) => mediansOf(all.filter((_, at) => at % 2 === side)));
  } finally {
    for (const each of [...proxies, upstream]) await each.stop();
  }
}

/** Returns the median of each figure. */
function mediansOf(results) {
  const names = Object.keys(results[0]);
  return Object.fromEntries(names.map((name) => [name, median(results.map((each) => each[name]))]));
}

export const llmGateway = [
  {
    id: "llm-gateway",
    title: "plain calls through the gateway, against a proxy on node:http that only forwards",
    marks: [{ of: "ratio", least: 0.5 }],
    run: proxying,
  },
];
