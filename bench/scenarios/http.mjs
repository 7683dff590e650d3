/** Requests through a limiter on the memory store, against the framework's own rate limiter. */

import { Agent, request } from "undici";
import { duel, median, timed } from "../measure.mjs";
import { startServer } from "../support.mjs";

const IN_FLIGHT = 32;
const CHILD = "./children/http-server.mjs";
/** A server that runs for hours has compiled everything; it takes so many requests until then. */
const WARM_UP_REQUESTS = 40_000;
/**
 * How the engine has compiled a server, and where its code and heap came to lie, holds for the life
 * of its process, and makes it faster or slower by up to a third. So there are several of each.
 */
const PAIRS = 3;

/** A server in a process of its own; the client and the server each have a core where there are two. */
async function contender(framework, limiter) {
  const { endpoint, stop, cpuUs } = await startServer(CHILD, [framework, limiter]);
  const dispatcher = new Agent({ connections: IN_FLIGHT, pipelining: 1 });
  return {
    cpuUs,
    stop: async () => {
      await dispatcher.close();
      await stop();
    },
    async loop(count) {
      for (let at = 0; at < count; at += 1) {
        const { statusCode, body } = await request(endpoint, { dispatcher });
        await body.dump();
        if (statusCode !== 200) throw new Error(`${framework} ${limiter} answered ${statusCode}`);
      }
    },
  };
}

function against(framework, limiter) {
  return async (pace) => {
    const pairs = [];
    const isQuick = pace.rounds <= 3;
    const rounds = isQuick ? pace.rounds : Math.ceil(pace.rounds / PAIRS);
    for (let at = 0; at < (isQuick ? 1 : PAIRS); at += 1) {
      pairs.push(await onePair(framework, limiter, { ...pace, rounds }, !isQuick));
    }
    return [0, 1].map((side) => mediansOf(pairs.map((pair) => pair[side])));
  };
}

async function onePair(framework, limiter, pace, warmsUp) {
  const both = [await contender(framework, limiter), await contender(framework, "theirs")];
  try {
    if (warmsUp) for (const each of both) await timed(each, WARM_UP_REQUESTS, IN_FLIGHT);
    const cpuUs = () => both.map((each) => each.cpuUs());
    const before = cpuUs();
    const counted = both.map((each) => counting(each));
    const results = await duel(counted, pace, { inFlight: IN_FLIGHT });
    const after = cpuUs();
    return results.map((result, at) => ({
      ...result,
      serverUs: (after[at] - before[at]) / counted[at].requests,
    }));
  } finally {
    for (const each of both) await each.stop();
  }
}

/** The median of each figure. */
function mediansOf(results) {
  const names = Object.keys(results[0]);
  return Object.fromEntries(names.map((name) => [name, median(results.map((each) => each[name]))]));
}

/** The same, with the number of its requests, so that the CPU of its server can be shared out. */
function counting(each) {
  const counted = {
    requests: 0,
    loop(count) {
      counted.requests += count;
      return each.loop(count);
    },
  };
  return counted;
}

const RIVALS = { express: "express-rate-limit", fastify: "@fastify/rate-limit" };

export const http = Object.entries(RIVALS).flatMap(([framework, rival]) => [
  {
    id: `http-${framework}`,
    title: `${framework}, one limit per address on the memory store, against ${rival}`,
    marks: [{ of: "ratio", least: 1 }],
    run: against(framework, "ours"),
  },
  {
    id: `http-${framework}-2`,
    title: `${framework}, two limits and a settle, against ${rival} with one limit`,
    marks: [{ of: "ratio", least: 0.95 }],
    run: against(framework, "ours-2"),
  },
]);
