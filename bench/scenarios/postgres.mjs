/** PostgreSQL 18 on this machine, with real disks. All contenders use pg. */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { CONTENDERS } from "../contenders-postgres.mjs";
import { RateLimiter, Repository } from "../dist/index.js";
import { postgres } from "../dist/limiter/repository/stores/postgres-pool.js";
import { duel, median } from "../measure.mjs";
import { startPostgres } from "../postgres.mjs";
import { keys } from "../support.mjs";

const KEYS = 1000;
const HOT = fileURLToPath(new URL("../children/hot-postgres.mjs", import.meta.url));
const PROCESSES = 16;
const CONNECTIONS = 4;
/** The default of pg, for a rival that has one process. */
const CONNECTIONS_ALONE = 10;

/** Returns a contender that takes from one key after the other. */
async function overKeys(kind, url) {
  const { take, close } = await CONTENDERS[kind](url, CONNECTIONS_ALONE);
  const names = keys(KEYS);
  let at = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      at = at + 1 === names.length ? 0 : at + 1;
      await take(names[at]);
    }
  };
  await Promise.all(Array.from({ length: 64 }, () => loop(Math.ceil(KEYS / 64))));
  return { loop, close };
}

async function pg64(pace) {
  const server = await startPostgres();
  const ours = await overKeys("ours", server.url);
  const theirs = await overKeys("rival", server.url);
  const same = await overKeys("rival", server.async);
  const [mine, rival, alike] = await duel([ours, theirs, same], pace, { inFlight: 64 });
  for (const { close } of [ours, theirs, same]) await close();
  await server.stop();
  return [{ ...mine, sameCommit: mine.perSecond / alike.perSecond }, rival];
}

async function pgHot(pace) {
  const server = await startPostgres();
  // Of two of a kind the slower one comes second: it is warm when the first one is.
  const places = {
    ours: { kind: "ours", url: server.url },
    update: { kind: "update", url: server.async },
    rivalAsync: { kind: "rival", url: server.async },
    rival: { kind: "rival", url: server.url },
  };
  // The tables, before all processes would make them at once.
  for (const { kind, url } of Object.values(places)) {
    const { take, close } = await CONTENDERS[kind](url, 1);
    await take("hot");
    await close();
  }
  const args = [JSON.stringify(places), "16", String(CONNECTIONS)];
  const children = Array.from({ length: PROCESSES }, () => fork(HOT, args));
  const answers = () => Promise.all(children.map(async (each) => (await once(each, "message"))[0]));
  await answers();
  const ms = pace.roundMs * 4;
  const rates = Object.fromEntries(Object.keys(places).map((name) => [name, []]));
  for (let round = 0; round <= 3; round += 1) {
    for (const name of Object.keys(places)) {
      for (const child of children) child.send({ name, ms });
      const taken = (await answers()).reduce((sum, each) => sum + each, 0);
      // The first round is to get warm.
      if (round > 0) rates[name].push((taken / ms) * 1000);
    }
  }
  const ends = children.map((child) => once(child, "exit"));
  for (const child of children) child.send({});
  await Promise.all(ends);
  await server.stop();
  const perSecond = median(rates.ours);
  return {
    perSecond,
    timesUpdate: perSecond / median(rates.update),
    timesRival: perSecond / median(rates.rival),
    timesRivalSame: perSecond / median(rates.rivalAsync),
  };
}

/** Counts the statements of 64 callers of one bucket. */
async function pgTrips(pace) {
  const server = await startPostgres();
  const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS });
  let statements = 0;
  const counting = {
    query: (text, values) => {
      statements += 1;
      return pool.query(text, values);
    },
  };
  const repository = await Repository.over(postgres(counting), { timeoutMs: 60_000 });
  await repository.limits.setSystem(["rpm:1000000000", "tpm:1000000000", "rpd:1000000000/day"]);
  const limiter = new RateLimiter(repository);
  const request = { entityId: "hot", resource: "api", consume: { rpm: 1, tpm: 500, rpd: 1 } };
  await limiter.acquire(request);
  const perAcquire = async (inFlight, calls) => {
    const before = statements;
    const lane = async () => {
      for (let left = calls / inFlight; left > 0; left -= 1) await limiter.acquire(request);
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return (statements - before) / calls;
  };
  const callsAlone = await perAcquire(1, pace.samples / 4);
  const callsPerOp = await perAcquire(64, 64 * Math.ceil(pace.samples / 16));
  await repository.close();
  await pool.end();
  await server.stop();
  return { callsAlone, callsPerOp };
}

export const postgresql = [
  {
    id: "pg-64",
    title:
      "PostgreSQL, one limit, 1k keys, 64 in flight, against RateLimiterPostgres, both as they come",
    marks: [
      { of: "ratio", least: 1.3 },
      { of: "sameCommit", least: 0.75 },
    ],
    run: pg64,
  },
  {
    id: "pg-hot",
    title:
      "PostgreSQL, one bucket, 16 processes with 16 in flight, against a bare UPDATE that commits the same way, RateLimiterPostgres as it comes, and committing the same way",
    marks: [
      { of: "timesUpdate", least: 4 },
      { of: "timesRival", least: 8 },
      { of: "timesRivalSame", least: 1 },
    ],
    run: pgHot,
  },
  {
    id: "pg-trips",
    title: "PostgreSQL, one bucket, three limits: statements per acquire, alone and 64 in flight",
    marks: [
      { of: "callsAlone", most: 1 },
      { of: "callsPerOp", most: 0.05 },
    ],
    run: pgTrips,
  },
];
