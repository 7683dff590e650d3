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
  return 0;
}

async function attack() {
  const random = seeded(seed);
  const warnings = { count: 0 };
  const limiter = await RateLimiter.open(`sqlite:${disk}/limits.db`, {
    onUnavailable: "allow",
    onWarning: () => {
      warnings.count += 1;
    },
  });
  await limiter.repository.limits.setSystem(["n:1000000/day"]);
  const consumed = new Map();
  const sums = { calls: 0, counted: 0, degraded: 0, threw: 0 };
  let time = 0;
  // New ids each time, so that the file has to grow.
  const call = async () => {
    const entityId = `user-${time}-${random.below(500)}`;
    const amount = 1 + random.below(5);
    sums.calls += 1;
    try {
      const lease = await limiter.acquire({ entityId, resource: "api", consume: { n: amount } });
      if (lease.degraded) sums.degraded += 1;
      else {
        sums.counted += 1;
        consumed.set(entityId, (consumed.get(entityId) ?? 0) + amount);
      }
    } catch (error) {
      sums.threw += 1;
      if (sums.threw <= 3) console.log(String(error));
    }
  };
  const filler = `${disk}/filler`;
  let full = 0;
  let recovered = 0;
  for (; time < TIMES; time += 1) {
    for (let at = 0; at < CALLS; at += 1) await call();
    const { bavail, bsize } = statfsSync(disk);
    const left = random.below(3) * 4096;
    writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - left)));
    const fullFrom = sums.degraded;
    // The log has room that is used first.
    for (let at = 0; at < CALLS_UNTIL_FULL && sums.degraded === fullFrom; at += 1) await call();
    const wasFull = sums.degraded > fullFrom;
    for (let at = 0; at < CALLS; at += 1) await call();
    rmSync(filler);
    // The first calls after it may still be told that the disk was full.
    for (let at = 0; at < 20; at += 1) await call();
    const before = sums.degraded;
    for (let at = 0; at < CALLS; at += 1) await call();
    if (wasFull) full += 1;
    if (wasFull && sums.degraded === before) recovered += 1;
  }
  let wrong = 0;
  for (const [entityId, amount] of consumed) {
    const [bucket] = await limiter.repository.buckets.list(entityId);
    if (bucket?.totalConsumed === amount) continue;
    wrong += 1;
    if (wrong <= 3) console.log(`${entityId} has ${bucket?.totalConsumed}, told: ${amount}`);
  }
  await limiter.close();
  const buckets = consumed.size;
  const figures = { seed, disk: DISK, times: TIMES, full, recovered, ...sums, buckets, wrong };
  console.log(JSON.stringify({ ...figures, warnings: warnings.count }));
  return sums.threw === 0 && wrong === 0 && full > TIMES / 2 && recovered === full;
}
