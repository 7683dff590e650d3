/**
 * A small disk that fills up and is freed again, thirty times, under a limiter that allows calls
 * while the store is down. No call may throw, and the books must be exact: what was granted and
 * counted is what the buckets show. Needs the right to mount, or namespaces of users.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RateLimiter } from "../../bench/dist/modules/index.js";
import { scratch } from "../../bench/support.mjs";
import { seeded } from "./random.mjs";

const TIMES = Number(process.argv[2] ?? 30);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007);
const CALLS = 200;
const CALLS_UNTIL_FULL = 8000;
const DISK = "16m";
/** Marks the process that has namespaces of its own, where it may mount. */
const INSIDE = "ZAEL_ATTACK_MAY_MOUNT";

const { folder, remove } = scratch();
const disk = `${folder}/disk`;
mkdirSync(disk);

/** The exit code that `soak-attack.mjs` reports as skipped. */
const NOT_POSSIBLE = 3;

function insideNamespaces() {
  const script = fileURLToPath(import.meta.url);
  const args = ["-rm", process.execPath, script, ...process.argv.slice(2)];
  const env = { ...process.env, [INSIDE]: "1" };
  const { status, error } = spawnSync("unshare", args, { stdio: "inherit", env });
  return error === undefined ? (status ?? 1) : notPossible();
}

function notPossible() {
  console.log(
    JSON.stringify({ skipped: "this machine does not let the script mount a small disk" }),
  );
  return NOT_POSSIBLE;
}

async function attack() {
  let warnings = 0;
  const limiter = await RateLimiter.open(`sqlite:${disk}/limits.db`, {
    onUnavailable: "allow",
    onWarning: () => {
      warnings += 1;
    },
  });
  await limiter.repository.limits.setSystem(["n:1000000/day"]);
  const caller = new Caller(limiter);
  const sums = { full: 0, recovered: 0 };
  for (let time = 0; time < TIMES; time += 1) await fillAndFree(caller, time, sums);
  const wrong = await caller.wrongBuckets();
  await limiter.close();
  const { calls, counted, degraded, threw, told } = caller;
  const figures = { seed, disk: DISK, ...sums, calls, counted, degraded, threw };
  console.log(JSON.stringify({ ...figures, buckets: told.size, wrong, warnings }));
  return threw === 0 && wrong === 0 && sums.full === TIMES && sums.recovered === TIMES;
}

async function fillAndFree(caller, time, sums) {
  const filler = `${disk}/filler`;
  await caller.call(time, CALLS);
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - caller.random.below(3) * 4096)));
  const before = caller.degraded;
  // The log has room that is used first.
  for (let at = 0; at < CALLS_UNTIL_FULL && caller.degraded === before; at += 1) {
    await caller.call(time, 1);
  }
  if (caller.degraded > before) sums.full += 1;
  await caller.call(time, CALLS);
  rmSync(filler);
  // The first calls after it may still get the error of the full disk.
  await caller.call(time, 20);
  const freed = caller.degraded;
  await caller.call(time, CALLS);
  if (caller.degraded === freed) sums.recovered += 1;
}

/** Makes calls, and adds up the answers. */
class Caller {
  calls = 0;
  counted = 0;
  degraded = 0;
  threw = 0;
  told = new Map();
  random = seeded(seed);

  constructor(limiter) {
    this.limiter = limiter;
  }

  async call(time, times) {
    for (let at = 0; at < times; at += 1) {
      // New ids each time, so that the file has to grow.
      await this.#acquire(`user-${time}-${this.random.below(500)}`, 1 + this.random.below(5));
    }
  }

  async #acquire(entityId, amount) {
    this.calls += 1;
    try {
      const request = { entityId, resource: "api", consume: { n: amount } };
      const { degraded } = await this.limiter.acquire(request);
      if (degraded) this.degraded += 1;
      else {
        this.counted += 1;
        this.told.set(entityId, (this.told.get(entityId) ?? 0) + amount);
      }
    } catch (error) {
      this.threw += 1;
      if (this.threw <= 3) console.log(String(error));
    }
  }

  async wrongBuckets() {
    let wrong = 0;
    for (const [entityId, amount] of this.told) {
      const [bucket] = await this.limiter.repository.buckets.list(entityId);
      if (bucket?.totalConsumed === amount) continue;
      wrong += 1;
      if (wrong <= 3) console.log(`${entityId} has ${bucket?.totalConsumed}, told: ${amount}`);
    }
    return wrong;
  }
}

const mount = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK}`, "tmpfs", disk]);
if (mount.status === 0) {
  try {
    process.exitCode = (await attack()) ? 0 : 1;
  } finally {
    // Lazily: a driver may still have the file open.
    spawnSync("umount", ["-l", disk]);
    remove();
  }
} else {
  remove();
  process.exitCode = process.env[INSIDE] === undefined ? insideNamespaces() : notPossible();
}
