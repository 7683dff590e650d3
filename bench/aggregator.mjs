/**
 * How fast usage is counted, per second of one core: the fold alone, the fold with the writes it plans, and everything on
 * memory from acquires to snapshots. Prints a table. Run it with `npm run bench:usage`.
 */
import { Aggregator } from "./dist/modules/aws/aggregator/aggregator.js";
import { planSnapshot } from "./dist/modules/aws/aggregator/snapshot-write.js";
import { changeOf, orderOf } from "./dist/modules/aws/aggregator/stream-change.js";
import { foldUsage } from "./dist/modules/aws/aggregator/usage-fold.js";
import { RateLimiter } from "./dist/modules/index.js";
import { Repository } from "./dist/modules/limiter/repository/repository.js";
import { MemoryItemStore } from "./dist/modules/limiter/storage/memory/item-store.js";

const WINDOWS = ["hourly", "daily", "monthly"];
const RECORDS = 20_000;
const ROUNDS = 10;
const BATCH = 1000;
const ENTITIES = 500;
const ACQUIRES = 20_000;
const AT = Date.parse("2026-11-15T18:32:00Z");
const TARGET_PER_SECOND = 100_000;

function bucket(entity, consumed) {
  const limit = (name, tc) => ({
    [`b_${name}_tk`]: 90_000_000,
    [`b_${name}_cp`]: 100_000_000,
    [`b_${name}_ra`]: 100_000_000,
    [`b_${name}_rp`]: 60_000,
    [`b_${name}_tc`]: tc,
  });
  return {
    PK: `OJEOS3iJbYI/BUCKET#key-${entity}#gpt-4#0`,
    SK: "#STATE",
    GSI2PK: "OJEOS3iJbYI/RESOURCE#gpt-4",
    GSI2SK: `BUCKET#key-${entity}#0`,
    GSI3PK: `OJEOS3iJbYI/ENTITY#key-${entity}`,
    GSI3SK: "BUCKET#gpt-4#0",
    GSI4PK: "OJEOS3iJbYI",
    GSI4SK: `BUCKET#key-${entity}#gpt-4#0`,
    entity_id: `key-${entity}`,
    resource: "gpt-4",
    rf: AT,
    cascade: false,
    shard_count: 1,
    ttl: 1_802_543_550,
    ac: consumed,
    ...limit("rpm", consumed * 1000),
    ...limit("tpm", consumed * 500_000),
    ...limit("wcu", consumed * 1000),
  };
}

/** Changes as a stream delivers them: two limits, 500 entities in turn. */
function changes() {
  const counts = new Array(ENTITIES).fill(0);
  return Array.from({ length: RECORDS }, (_, at) => {
    const entity = at % ENTITIES;
    const before = bucket(entity, counts[entity]);
    counts[entity] += 1;
    const after = bucket(entity, counts[entity]);
    const id = String(400_000_000_000_000_000_000n + BigInt(at));
    const key = { PK: after.PK, SK: after.SK };
    return { id, order: orderOf("0mhzabcde.", id), key, before, after, atMs: AT + at };
  });
}

/** Seconds of one core: other processes on the machine take nothing away from them. */
function secondsSince(started) {
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1e6;
}

function perSecond(records, work) {
  const started = process.cpuUsage();
  work();
  return records / secondsSince(started);
}

function batches(all) {
  return Array.from({ length: all.length / BATCH }, (_, at) =>
    all.slice(at * BATCH, (at + 1) * BATCH),
  );
}

async function pipeline() {
  const store = new MemoryItemStore();
  const repo = await Repository.over(store);
  const limiter = new RateLimiter(repo);
  await repo.limits.setSystem(["rpm:1000000", "tpm:1000000000"]);
  const records = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const record of store.changes({ from: "now", signal: stop.signal })) {
      records.push(changeOf(record, ""));
    }
  })();
  const started = process.cpuUsage();
  for (let at = 0; at < ACQUIRES; at += 1) {
    await limiter.acquire({
      entityId: `key-${at % ENTITIES}`,
      resource: "gpt-4",
      consume: { rpm: 1, tpm: 500 },
    });
  }
  await new Promise(setImmediate);
  stop.abort();
  await reading;
  const acquiring = secondsSince(started);
  const aggregator = new Aggregator({ store, clock: Date.now, log: () => {} });
  for (let at = 0; at < records.length; at += BATCH) {
    await aggregator.process(records.slice(at, at + BATCH));
  }
  const whole = secondsSince(started);
  const { total } = await repo.usage.summary({ resource: "gpt-4", window: "daily" });
  if (total.rpm !== ACQUIRES) throw new Error(`counted ${total.rpm} of ${ACQUIRES}`);
  await repo.close();
  return {
    acquires: ACQUIRES / acquiring,
    counted: records.length / (whole - acquiring),
    whole: ACQUIRES / whole,
  };
}

const all = batches(changes());
const rounds = Array.from({ length: ROUNDS }, () => all).flat();
const fold = (use) => {
  for (const batch of rounds) use(foldUsage(batch, WINDOWS).tallies);
};
const plan = (tallies) => {
  for (const tally of tallies) planSnapshot(tally, undefined, 90);
};
fold(plan);
const folded = perSecond(RECORDS * ROUNDS, () => fold(() => {}));
const planned = perSecond(RECORDS * ROUNDS, () => fold(plan));
const piped = await pipeline();

const row = (name, value) => [name, `${Math.round(value).toLocaleString("en-US")} /s`];
const rows = [
  row("fold, records", folded),
  row("fold and plan of all writes, records", planned),
  row("distributed acquires on memory", piped.acquires),
  row("counted on memory, records", piped.counted),
  row("acquire to snapshot on memory, acquires", piped.whole),
];
for (const [name, value] of rows) console.log(`${name.padEnd(44)} ${value.padStart(14)}`);
console.log(`batches of ${BATCH}, ${ENTITIES} entities, 2 limits, ${WINDOWS.join(", ")}`);
if (folded < TARGET_PER_SECOND) {
  console.error(`the fold is below ${TARGET_PER_SECOND.toLocaleString("en-US")} records a second`);
  process.exitCode = 1;
}
