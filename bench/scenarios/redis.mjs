/** Valkey 9 on this machine, by ioredis; ours has two limits, its rivals one counter. */

import { CONTENDERS } from "../contenders-redis.mjs";
import { RateLimiter } from "../dist/index.js";
import { duel } from "../measure.mjs";
import { startValkey } from "../redis.mjs";
import { keys } from "../support.mjs";

const KEYS = 1000;

/** Returns a contender that takes from some keys, one after the other. */
async function over(kind, url, names) {
  const { take, close } = await CONTENDERS[kind](url);
  let at = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      at = at + 1 >= names.length ? 0 : at + 1;
      await take(names[at]);
    }
  };
  await loop(names.length);
  return { loop, close };
}

function many(inFlight) {
  return async (pace) => {
    const server = await startValkey();
    const names = keys(KEYS);
    const ours = await over("ours", server.url, names);
    const theirs = await over("rival", server.url, names);
    const engineUs = server.cpuUs;
    const [mine, rival] = await duel([ours, theirs], pace, { inFlight, engineUs });
    for (const { close } of [ours, theirs]) await close();
    await server.stop();
    return [{ ...mine, timesServer: mine.engineUs / rival.engineUs }, rival];
  };
}

async function hot(pace) {
  const server = await startValkey();
  const contenders = [];
  for (const kind of ["ours", "rival", "increment"]) {
    contenders.push(await over(kind, server.url, ["hot"]));
  }
  const [mine, rival, increment] = await duel(contenders, pace, { inFlight: 64 });
  for (const { close } of contenders) await close();
  await server.stop();
  return [{ ...mine, timesIncrement: mine.perSecond / increment.perSecond }, rival];
}

/** Counts the requests of warm acquires below no, one and two ancestors. */
async function trips(pace) {
  const server = await startValkey();
  let requests = 0;
  const onCall = () => {
    requests += 1;
  };
  const limiter = await RateLimiter.open(server.url, { onCall, configCacheTtlSeconds: 3600 });
  const { entities, limits } = limiter.repository;
  await limits.setSystem(["rpm:1000000000", "tpm:1000000000"]);
  const names = ["org", "team", "key"];
  for (const [at, id] of names.entries()) {
    await entities.create({ id, cascade: true, ...(at === 0 ? {} : { parentId: names[at - 1] }) });
  }
  const perAcquire = async (entityId) => {
    const request = { entityId, resource: "api", consume: { rpm: 1, tpm: 10 } };
    await limiter.acquire(request);
    const before = requests;
    for (let left = pace.samples / 8; left > 0; left -= 1) await limiter.acquire(request);
    return (requests - before) / Math.ceil(pace.samples / 8);
  };
  const [callsAlone, callsBelowOne, callsBelowTwo] = [
    await perAcquire("org"),
    await perAcquire("team"),
    await perAcquire("key"),
  ];
  await limiter.close();
  await server.stop();
  return { callsAlone, callsBelowOne, callsBelowTwo };
}

export const redis = [
  {
    id: "redis-64",
    title: "Valkey, 1k keys, 64 in flight: two limits against one of RateLimiterRedis",
    marks: [
      { of: "ratio", least: 0.6 },
      { of: "cpuRatio", most: 1.4 },
      { of: "timesServer", most: 2 },
    ],
    run: many(64),
  },
  {
    id: "redis-1",
    title: "Valkey, 1k keys, one at a time: two limits against one of RateLimiterRedis",
    marks: [{ of: "ratio", least: 0.65 }],
    run: many(1),
  },
  {
    id: "redis-hot",
    title: "Valkey, one bucket, 64 in flight: two limits against RateLimiterRedis and bare INCRBY",
    marks: [
      { of: "ratio", least: 4 },
      { of: "timesIncrement", least: 2 },
    ],
    run: hot,
  },
  {
    id: "redis-trips",
    title: "Valkey, two limits: requests per acquire below no, one and two ancestors",
    marks: [
      { of: "callsAlone", most: 1 },
      { of: "callsBelowOne", most: 1 },
      { of: "callsBelowTwo", most: 1 },
    ],
    run: trips,
  },
];
