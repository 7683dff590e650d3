/** One file that any number of processes share. All contenders use better-sqlite3. */

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { RateLimiterSQLite } from "rate-limiter-flexible";
import { RateLimiter } from "../dist/index.js";
import { duel, quantile } from "../measure.mjs";
import { keys, scratch, taking } from "../support.mjs";

const KEYS = 10_000;
const LIMITS = ["rpm:1000000/sec", "tpm:1000000/sec"];
const SATURATE = fileURLToPath(new URL("../children/saturate.mjs", import.meta.url));

function open(path) {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = NORMAL");
  return database;
}

async function ourTaking(path, names) {
  const limiter = await RateLimiter.open(`sqlite:${path}`);
  await limiter.repository.limits.setSystem(LIMITS);
  const { loop } = taking(limiter, names);
  await loop(names.length);
  return { loop, close: () => limiter.close() };
}

/** Opens the rival, which counts one limit in fixed windows. */
async function rivalTaking(path, names) {
  const database = open(path);
  const rival = await new Promise((resolve, reject) => {
    const made = new RateLimiterSQLite(
      {
        storeClient: database,
        storeType: "better-sqlite3",
        tableName: "limits",
        points: 1_000_000_000,
        duration: 3600,
      },
      (error) =>
        error === undefined
          ? setImmediate(() => resolve(made))
          : reject(new Error("The rival did not start", { cause: error })),
    );
  });
  let at = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      at = (at + 1) % names.length;
      await rival.consume(names[at]);
    }
  };
  await loop(names.length);
  return { loop, close: () => database.close() };
}

/** Prepares a statement that writes as much as ours for two limits, and decides nothing. */
function bareUpdating(path, names) {
  const database = open(path);
  database.exec("CREATE TABLE buckets (key TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID");
  const insert = database.prepare("INSERT INTO buckets VALUES (?, ?)");
  const update = database.prepare("UPDATE buckets SET state = ? WHERE key = ? RETURNING state");
  const limit = (name, n) => `["${name}",1000000000,1000000000,1000,${n},1700000000000,0,${n},0]`;
  const state = (n) => `[1,"system",0,null,[${limit("rpm", n)},${limit("tpm", n)}],472222,${n}]`;
  database.transaction(() => {
    for (const name of names) insert.run(name, state(0));
  })();
  // Never the same twice: SQLite writes nothing where nothing changes.
  let writes = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      writes += 1;
      // To its end: after `get`, which stops at the row, SQLite never brings its log to the file.
      await update.all(state(writes), names[writes % names.length]);
    }
  };
  return { loop, close: () => database.close() };
}

async function sql1(pace) {
  const { folder, remove } = scratch();
  const names = keys(KEYS);
  const ours = await ourTaking(join(folder, "ours.db"), names);
  const theirs = await rivalTaking(join(folder, "theirs.db"), names);
  const results = await duel([ours, theirs], pace);
  await ours.close();
  theirs.close();
  remove();
  return results;
}

async function sqlRaw(pace) {
  const { folder, remove } = scratch();
  const names = keys(KEYS);
  const ours = await ourTaking(join(folder, "ours.db"), names);
  const bare = bareUpdating(join(folder, "bare.db"), names);
  const results = await duel([ours, bare], pace);
  await ours.close();
  bare.close();
  remove();
  return results;
}

/** Compares the CPU with 64 in flight, and of ours with one at a time. */
async function sql64(pace) {
  const { folder, remove } = scratch();
  const names = keys(KEYS);
  const ours = await ourTaking(join(folder, "ours.db"), names);
  const theirs = await rivalTaking(join(folder, "theirs.db"), names);
  const bare = bareUpdating(join(folder, "bare.db"), names);
  const [mine, rival, update] = await duel([ours, theirs, bare], pace, { inFlight: 64 });
  const [alone] = await duel([ours], pace);
  await ours.close();
  theirs.close();
  bare.close();
  remove();
  return {
    perSecond: mine.perSecond,
    cpuUs: mine.cpuUs,
    timesUpdate: update.cpuUs / mine.cpuUs,
    timesRival: rival.cpuUs / mine.cpuUs,
    timesAlone: alone.cpuUs / mine.cpuUs,
  };
}

/** Runs two processes as fast as they can; neither may starve. */
async function sql2p(pace) {
  const { folder, remove } = scratch();
  const path = join(folder, "shared.db");
  const first = await RateLimiter.open(`sqlite:${path}`);
  await first.repository.limits.setSystem(LIMITS);
  await first.close();
  const durationMs = pace.roundMs * 12;
  const children = [0, 1].map(() => fork(SATURATE, [path, String(durationMs)]));
  const ends = children.map((child) => once(child, "exit"));
  await Promise.all(children.map((child) => once(child, "message")));
  for (const child of children) child.send("go");
  const waits = await Promise.all(children.map(async (child) => (await once(child, "message"))[0]));
  await Promise.all(ends);
  remove();
  const longest = waits.map((some) => some.reduce((most, wait) => Math.max(most, wait), 0));
  const all = waits.flat();
  return {
    longestWaitMs: Math.max(...longest),
    p99WaitMs: quantile(all, 0.99),
    perSecond: (all.length / durationMs) * 1000,
  };
}

export const sqlite = [
  {
    id: "sql-1",
    title:
      "sqlite file, two limits, 10k keys, safe between processes, against RateLimiterSQLite (one limit)",
    marks: [{ of: "ratio", least: 2 }],
    run: sql1,
  },
  {
    id: "sql-raw",
    title: "the same against a bare better-sqlite3 UPDATE … RETURNING of a packed row",
    marks: [{ of: "ratio", least: 0.6 }],
    run: sqlRaw,
  },
  {
    id: "sql-64",
    title:
      "64 in flight, CPU per acquire against a bare UPDATE, RateLimiterSQLite, and one at a time",
    marks: [
      { of: "timesUpdate", least: 1.2 },
      { of: "timesRival", least: 4 },
      { of: "timesAlone", least: 1 },
    ],
    run: sql64,
  },
  {
    id: "sql-2p",
    title: "two processes saturating one file: the longest time an acquire of either waits",
    marks: [{ of: "longestWaitMs", most: 100 }],
    run: sql2p,
  },
];
