/** Requests through a limiter on the memory store, against the framework's own rate limiter. */

import { KeepAliveClient } from "../keep-alive-client.mjs";
import { COLLECTIONS, median, quantile } from "../measure.mjs";
import { startServer } from "../support.mjs";

const CONNECTIONS = 32;
const CHILD = "./children/http-server.mjs";
/** Requests until a server has compiled everything, as one that runs for hours has. */
const WARM_UP_REQUESTS = 15_000;
/** In the first rounds the engine still replaces code that it has compiled; they do not count. */
const WARM_UP_ROUNDS = 3;
/**
 * How the engine has compiled a server, and where its code and heap came to lie, holds for the life
 * of its process, and makes it faster or slower by up to a fifth. So there are several of each, and
 * their mean counts: a median of few would be one way or the other.
 */
const PROCESSES = 8;
/** Without a limiter: what remains of the others is what their limiters cost. */
const BARE_PROCESSES = 2;
/** The machine becomes slower and faster within seconds: many short rounds rather than few. */
const FULL = { rounds: WARM_UP_ROUNDS + 12, roundMs: 80 };

/** Starts a server in a new process; with two cores it and the client have one each. */
async function started(framework, limiter) {
  const { endpoint, stop, cpuUs, ...server } = await startServer(CHILD, [framework, limiter]);
  const client = new KeepAliveClient(endpoint, CONNECTIONS);
  const ask = async (count, took) => {
    await client.open();
    // The first request of a connection costs more, and none of those is measured.
    await client.ask(CONNECTIONS);
    const [cpuBefore, startedAt] = [cpuUs?.(), performance.now()];
    await client.ask(count, took);
    const ms = performance.now() - startedAt;
    const serverUs = cpuBefore === undefined ? undefined : cpuUs() - cpuBefore;
    client.close();
    return { perSecond: (count / ms) * 1000, cpuUs: serverUs && serverUs / count };
  };
  const age = async () => {
    for (let at = 0; at < COLLECTIONS; at += 1) await server.ask("collect");
  };
  return { limiter, ask, age, stop };
}

function against(framework, limiter) {
  return async (pace) => {
    const isQuick = pace.rounds <= 3;
    const servers = [];
    try {
      for (const kind of isQuick ? [limiter, "theirs", "none"] : orderOf(limiter)) {
        servers.push(await started(framework, kind));
      }
      const warmUp = isQuick ? WARM_UP_REQUESTS / 20 : WARM_UP_REQUESTS;
      for (const { ask, age } of servers) {
        await ask(warmUp);
        await age();
        await ask(warmUp);
      }
      const rounds = await measured(servers, isQuick ? pace : FULL);
      return [
        await figuresOf(rounds, servers, limiter, pace),
        await figuresOf(rounds, servers, "theirs", pace),
      ];
    } finally {
      for (const { stop } of servers) await stop();
    }
  };
}

/** Neighbours are of different kinds: what the machine does meanwhile, it does to both. */
function orderOf(limiter) {
  const pairs = Array.from({ length: PROCESSES }, () => [limiter, "theirs"]);
  const bare = new Array(BARE_PROCESSES).fill("none");
  return [...pairs.flat(), ...bare];
}

/** Measures every server in every round, in reverse order in every second one. */
async function measured(servers, { rounds, roundMs }) {
  const { perSecond } = await servers[0].ask(CONNECTIONS * 20);
  const count = Math.max(CONNECTIONS, Math.round((perSecond * roundMs) / 1000));
  const results = [];
  for (let round = 0; round < rounds; round += 1) {
    const result = new Map();
    for (const server of round % 2 === 0 ? servers : [...servers].reverse()) {
      result.set(server, await server.ask(count));
    }
    results.push(result);
  }
  return results;
}

/** Figures of one kind. Latencies are taken apart, since looking costs time as well. */
async function figuresOf(rounds, servers, kind, { samples }) {
  const cpuUs = meanOf(rounds, servers, kind, "cpuUs");
  const latencies = [];
  const same = servers.filter(({ limiter }) => limiter === kind);
  for (const { ask } of same) await ask(samples / same.length, (us) => latencies.push(us));
  return {
    perSecond: meanOf(rounds, servers, kind, "perSecond"),
    cpuUs,
    addedUs: cpuUs - meanOf(rounds, servers, "none", "cpuUs"),
    p50Us: quantile(latencies, 0.5),
    p99Us: quantile(latencies, 0.99),
  };
}

/** Returns the mean over the processes of one kind, of the median over the rounds of each. */
function meanOf(rounds, servers, kind, name) {
  const counted = rounds.slice(rounds.length > WARM_UP_ROUNDS ? WARM_UP_ROUNDS : 0);
  const figures = servers
    .filter(({ limiter }) => limiter === kind)
    .map((server) => median(counted.map((round) => round.get(server)[name])));
  return figures.reduce((sum, each) => sum + each, 0) / figures.length;
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
