/**
 * Processes that are killed with -9 in the middle of their acquires. Everything that was granted is
 * counted, and what is counted beyond that is at most the one call that each killed process was
 * about. Arguments: seconds per store.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { RateLimiter, Repository } from "../../bench/dist/modules/index.js";
import { scratch, startDynoxide } from "../../bench/support.mjs";
import { seeded } from "./random.mjs";

const secondsEach = Number(process.argv[2] ?? 30);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007);
const PROCESSES = 4;
const TAKER = fileURLToPath(new URL("taker.mjs", import.meta.url));

/** Starts a process and kills it; returns how much it was granted and refused. */
async function life(url, entityId, options, lifeMs) {
  const args = [TAKER, url, entityId, JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const seen = { "+": 0, "-": 0, o: 0 };
  const opened = new Promise((resolve) => {
    child.stdout.setEncoding("latin1").on("data", (text) => {
      for (const byte of text) seen[byte] += 1;
      resolve();
    });
  });
  const closed = once(child, "close");
  await Promise.race([opened, closed]);
  await pause(lifeMs);
  const killed = child.kill("SIGKILL");
  await closed;
  return { granted: seen["+"], refused: seen["-"], killed };
}

async function attack(store, url, options) {
  const random = seeded(seed);
  const limiter = await RateLimiter.open(url, options);
  await limiter.repository.limits.setSystem(["n:1000000/day"]);
  const sums = { store, kills: 0, died: 0, granted: 0, refused: 0 };
  const until = performance.now() + secondsEach * 1000;
  const lane = async () => {
    while (performance.now() < until) {
      const one = await life(url, "hot", options, random.below(random.pick([20, 200, 600])));
      if (one.killed) sums.kills += 1;
      else sums.died += 1;
      sums.granted += one.granted;
      sums.refused += one.refused;
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, lane));
  const [bucket] = await limiter.repository.buckets.list("hot");
  const consumed = bucket?.totalConsumed ?? 0;
  await limiter.close();
  const beyond = consumed - sums.granted;
  const ok = sums.died === 0 && sums.kills > 0 && beyond >= 0 && beyond <= sums.kills;
  console.log(JSON.stringify({ seed, ...sums, consumed, unknown: beyond, ok }));
  return ok;
}

const { folder, remove } = scratch();
const engine = await startDynoxide();
const { endpoint } = engine;
await (await Repository.createTable("kills", { endpoint })).close();
const onFile = await attack("sqlite", `sqlite:${folder}/limits.db`, { timeoutMs: 20_000 });
const onTable = await attack("dynoxide", "dynamodb://kills", { endpoint, timeoutMs: 20_000 });
await engine.stop();
remove();
process.exitCode = onFile && onTable ? 0 : 1;
