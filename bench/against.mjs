/**
 * `npm run bench:against -- REVISION`: this library and an earlier one, both in one process and
 * measured in alternating rounds: what the machine does meanwhile, it does to both. A process
 * settles for one way to compile and to lay out both of them, so a library differs from its own copy
 * by a tenth in memory, however long it is measured. Each figure is therefore the mean over several
 * processes, half of which load the older library last, with its standard error.
 */

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as untilNoTick } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildEngine, engineName } from "./engine.mjs";
import { makeFamilies, withoutStream } from "./local-table.mjs";
import { COLLECTIONS, timed } from "./measure.mjs";
import { startPostgres } from "./postgres.mjs";
import { startValkey } from "./redis.mjs";
import { keys, scratch, startDynoxide, taking } from "./support.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** How long a round takes, about: short, so that both meet the same machine. */
const ROUND_MS = 100;
const ROUNDS = 20;
const WARM_UP_MS = 3000;

/**
 * Per scenario: its title, the server that it needs, how many calls are in flight, and a contender
 * of each library.
 */
const SCENARIOS = {
  "mem-1": {
    title: "memory, one limit",
    make: (library) => embedded(library, "memory:", ["rpm:1000000/sec"], { rpm: 1 }),
  },
  "mem-2": {
    title: "memory, two limits",
    make: (library) => embedded(library, "memory:", TWO, BOTH),
  },
  "sql-1": {
    title: "SQLite, two limits",
    make: async (library) => {
      const { folder, remove } = scratch();
      const made = await embedded(library, `sqlite:${join(folder, "limits.db")}`, TWO, BOTH);
      return { ...made, close: () => made.close().then(remove) };
    },
  },
  "sql-adjust": {
    title: "SQLite, the same, adjusted",
    make: async (library) => {
      const { folder, remove } = scratch();
      const made = await embedded(library, `sqlite:${join(folder, "limits.db")}`, TWO, BOTH);
      const { loop } = adjusting(made.limiter, keys(10_000));
      return { loop, close: () => made.close().then(remove) };
    },
  },
  "ddb-1": {
    title: "DynamoDB, two limits, 256 buckets",
    inFlight: 64,
    start: startDynoxide,
    make: (library, engine) => onDynamo(library, engine, async () => keys(256)),
  },
  "ddb-adjust": {
    title: "DynamoDB, the same, adjusted",
    inFlight: 64,
    start: startDynoxide,
    make: async (library, engine) => {
      const names = keys(256);
      const { limiter, close } = await onDynamo(library, engine, async () => names);
      return { ...adjusting(limiter, names), close };
    },
  },
  "ddb-casc": {
    title: "DynamoDB, 64 children of 16 parents",
    inFlight: 64,
    start: startDynoxide,
    make: (library, engine) => onDynamo(library, engine, children),
  },
  "pg-1": {
    title: "PostgreSQL, two limits, 256 buckets",
    inFlight: 64,
    start: startPostgres,
    make: (library, { url }) => onServer(library, url),
  },
  "pg-slots": {
    title: "PostgreSQL, the same with slots, adjusted",
    inFlight: 64,
    start: startPostgres,
    make: (library, { url }) => withSlots(library, url),
  },
  "redis-1": {
    title: "Valkey, two limits, 256 buckets",
    inFlight: 64,
    start: startValkey,
    make: (library, { url }) => onServer(library, url),
  },
  "redis-slots": {
    title: "Valkey, the same with slots, adjusted",
    inFlight: 64,
    start: startValkey,
    make: (library, { url }) => withSlots(library, url),
  },
};

const TWO = ["rpm:1000000/sec", "tpm:1000000000/sec"];
const BOTH = { rpm: 1, tpm: 500 };
const SLOT = { parallel: 1, ...BOTH };
const LOCAL = {
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
};

const USAGE = `npm run bench:against -- REVISION [--only id,id] [--processes N]
  scenarios: ${Object.keys(SCENARIOS).join(", ")}`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string" },
    processes: { type: "string", default: "6" },
    /** Set by this program: it measures one scenario with two builds that exist. */
    builds: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const chosen = values.only?.split(",") ?? Object.keys(SCENARIOS);
const processes = Number(values.processes);
const unknown = chosen.find((id) => !(id in SCENARIOS));
if (values.help) {
  console.log(USAGE);
} else if (unknown !== undefined || !(processes > 0 && processes % 2 === 0)) {
  fail(unknown === undefined ? "--processes takes an even number." : `Unknown: ${unknown}.`);
} else if (values.builds !== undefined) {
  await measure(chosen[0], values.builds.split(","));
} else if (positionals.length !== 1) {
  fail("Which revision is it measured against?");
} else {
  compare(positionals[0]);
}

function fail(sentence) {
  console.error(`${sentence}\n${USAGE}`);
  process.exitCode = 2;
}

/** Builds both libraries, and measures every scenario in a process of its own. */
function compare(revision) {
  const found = spawnSync("git", ["cat-file", "-e", `${revision}^{commit}`], { cwd: ROOT });
  if (found.status !== 0) return fail(`There is no revision "${revision}".`);
  const usesEngine = chosen.some((id) => SCENARIOS[id].start === startDynoxide);
  if (usesEngine) buildEngine();
  const checkout = join(mkdtempSync(join(tmpdir(), "zae-limiter-against-")), "checkout");
  try {
    run("git", ["worktree", "add", "--quiet", "--detach", checkout, revision], ROOT);
    run("npm", ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], checkout);
    // Beside each other, so that both find the same packages, such as the driver of SQLite.
    const now = join(ROOT, "bench/dist");
    const before = join(now, "before");
    run(process.execPath, ["scripts/bundle.mjs", now], ROOT);
    run(process.execPath, ["scripts/bundle.mjs", before], checkout);
    const engine = usesEngine ? `; DynamoDB is ${engineName()}` : "";
    console.log(`${processes} processes against ${revision}${engine}`);
    console.log(
      "  rate: above 1 is faster; CPU, of this process and of the engine: below 1 is less",
    );
    for (const id of chosen) console.log(lineOf(id, [before, now]));
  } finally {
    if (existsSync(checkout)) run("git", ["worktree", "remove", "--force", checkout], ROOT);
    rmSync(join(checkout, ".."), { recursive: true, force: true });
  }
}

/** Formats the figures of one scenario, over all processes. */
function lineOf(id, builds) {
  const results = Array.from({ length: processes }, (_, at) => {
    const order = at % 2 === 0 ? builds : [...builds].reverse();
    const options = ["--only", id, "--builds", order.join(",")];
    const flags = ["--expose-gc", "--no-warnings", fileURLToPath(import.meta.url)];
    const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, ...options], {
      cwd: ROOT,
    });
    if (status !== 0) throw new Error(`${id} ended with ${status}:\n${stderr}`);
    // The logarithm of a ratio, which has the other sign the other way round.
    const logs = Object.entries(JSON.parse(stdout));
    return Object.fromEntries(logs.map(([name, log]) => [name, at % 2 === 0 ? log : -log]));
  });
  const figures = Object.keys(results[0]).map((name) => {
    const { mean, error } = meanOf(results.map((result) => result[name]));
    return `${name} ${Math.exp(mean).toFixed(3)} ± ${error.toFixed(3)}`;
  });
  return `${id.padEnd(12)}${SCENARIOS[id].title.padEnd(43)}${figures.join("   ")}`;
}

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
}

/** Prints the logarithms of the ratios of the second build to the first. */
async function measure(id, builds) {
  const { inFlight = 1, start: startEngine, make } = SCENARIOS[id];
  Object.assign(process.env, LOCAL);
  const engine = await startEngine?.();
  const contenders = [];
  for (const build of builds) {
    const library = await import(join(build, "index.js"));
    contenders.push(await make(library, engine));
  }
  const count = await warmUp(contenders, inFlight);
  const [before, now] = contenders.map(() => ({ ms: [], cpuUs: [], engineUs: [] }));
  for (let round = 0; round < ROUNDS; round += 1) {
    const pairs = [
      [contenders[0], before],
      [contenders[1], now],
    ];
    for (const [contender, results] of round % 2 === 0 ? pairs : pairs.reverse()) {
      global.gc({ type: "minor" });
      const engineStart = engine?.cpuUs?.() ?? 0;
      const start = process.cpuUsage();
      results.ms.push(await timed(contender, count, inFlight));
      const { user, system } = process.cpuUsage(start);
      results.cpuUs.push(user + system);
      results.engineUs.push((engine?.cpuUs?.() ?? 0) - engineStart);
    }
  }
  const figures = { rate: ratio(before.ms, now.ms), CPU: ratio(now.cpuUs, before.cpuUs) };
  if (engine?.cpuUs !== undefined) figures.engine = ratio(now.engineUs, before.engineUs);
  console.log(JSON.stringify(figures));
  for (const { close } of contenders) await close();
  await engine?.stop();
  process.exit(0);
}

/** Runs both until they are compiled; returns how many calls make a round. */
async function warmUp(contenders, inFlight) {
  let count = inFlight * 4;
  for (const contender of contenders) {
    const until = performance.now() + WARM_UP_MS;
    while (performance.now() < until) {
      const ms = await timed(contender, count, inFlight);
      count = Math.max(inFlight, Math.round((count * ROUND_MS) / ms));
    }
  }
  for (let at = 0; at < COLLECTIONS; at += 1) {
    await untilNoTick();
    global.gc();
  }
  for (const contender of contenders) await timed(contender, count * 5, inFlight);
  return count;
}

/** Returns the logarithm of the mean ratio of rounds that followed each other. */
function ratio(above, below) {
  return meanOf(above.map((value, at) => Math.log(value / below[at]))).mean;
}

function meanOf(numbers) {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return { mean, error: Math.sqrt(squares / (numbers.length - 1) / numbers.length) };
}

/** Returns a contender for which all keys have been seen before. */
async function seasoned(limiter, names, consume) {
  const { loop } = taking(limiter, names, consume);
  await loop(names.length);
  return { limiter, loop, close: () => limiter.close() };
}

/** Acquires an estimate, and consumes a little more when the cost is known. */
function adjusting(limiter, names, consume = BOTH) {
  let at = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      at = at + 1 === names.length ? 0 : at + 1;
      const request = { entityId: names[at], resource: "api", consume };
      await limiter.run(request, async (lease) => lease.adjust({ tpm: 7 }));
    }
  };
  return { loop };
}

async function embedded({ RateLimiter }, url, limits, consume) {
  const limiter = await RateLimiter.open(url);
  await limiter.repository.limits.setSystem(limits);
  return seasoned(limiter, keys(10_000), consume);
}

/** Opens a limiter on a server, in a place that only this library uses. */
async function onServer({ RateLimiter, Repository }, url, limits = TWO, consume = BOTH) {
  const name = `against_${randomUUID().slice(0, 8)}`;
  const place = `${url}?${url.startsWith("postgres") ? "schema" : "prefix"}=${name}`;
  await Repository.migrate(place);
  const limiter = await RateLimiter.open(place, { timeoutMs: 20_000 });
  await limiter.repository.limits.setSystem(limits);
  return seasoned(limiter, keys(256), consume);
}

/** Takes a slot with each call, and gives it back with what it cost. */
async function withSlots(library, url) {
  const limits = [...TWO, "parallel:1000000 concurrent"];
  const { limiter, close } = await onServer(library, url, limits, SLOT);
  return { ...adjusting(limiter, keys(256), SLOT), close };
}

async function children(root) {
  return (await makeFamilies(root)).map(({ child }) => child);
}

/** Opens a limiter on a new table, made by the same library. */
async function onDynamo({ RateLimiter, Repository }, { endpoint }, namesOf) {
  const table = `against-${randomUUID()}`;
  const options = { endpoint, timeoutMs: 20_000 };
  const root = await Repository.createTable(table, options);
  await withoutStream(endpoint, table);
  await root.limits.setSystem(TWO);
  const names = await namesOf(root);
  await root.close();
  return seasoned(await RateLimiter.open(`dynamodb://${table}`, options), names, BOTH);
}
