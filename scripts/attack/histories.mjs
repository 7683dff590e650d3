/**
 * Random histories of one client against an ideal bucket: every grant, refusal, retry-after,
 * balance and total must be that of the ideal bucket. Arguments: seconds per store, and the seed.
 */
import { RateLimiter, Repository } from "../../bench/dist/modules/index.js";
import { scratch, startDynoxide } from "../../bench/support.mjs";
import { IdealBucket } from "./ideal-bucket.mjs";
import { seeded } from "./random.mjs";

const secondsEach = Number(process.argv[2] ?? 30);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007);
const CALLS = 150;
const RESOURCE = "api";
const START_MS = Date.parse("2026-11-16T10:00:00Z");

const LIMITS = [
  { text: "a:10/min", name: "a", capacity: 10, refill: 10, periodMs: 60_000 },
  { text: "a:7/13sec", name: "a", capacity: 7, refill: 7, periodMs: 13_000 },
  { text: "a:3/min:9", name: "a", capacity: 9, refill: 3, periodMs: 60_000 },
  { text: "b:100/hour", name: "b", capacity: 100, refill: 100, periodMs: 3_600_000 },
  { text: "b:1000/7min", name: "b", capacity: 1000, refill: 1000, periodMs: 420_000 },
  {
    text: "b:1000000000/day",
    name: "b",
    capacity: 1_000_000_000,
    refill: 1_000_000_000,
    periodMs: 86_400_000,
  },
];
const A_LIMITS = LIMITS.filter(({ name }) => name === "a");
const B_LIMITS = LIMITS.filter(({ name }) => name === "b");

function anyLimits(random) {
  const [a, b] = [random.pick(A_LIMITS), random.pick(B_LIMITS)];
  return random.pick([[a], [b], [a, b]]);
}

function anyPause(random) {
  const most = random.pick([3, 50, 1500, 30_000, 600_000, 8_000_000, 100_000_000]);
  return random.next() < 0.4 ? 0 : random.below(most);
}

function anyAmounts(random, limits) {
  return Object.fromEntries(
    limits.map(({ name, capacity }) => [
      name,
      random.below(random.pick([2, 4, Math.ceil(capacity / 2), Math.ceil(capacity * 1.1)])),
    ]),
  );
}

/** One entity from its first call on. Returns what differed, if anything. */
class History {
  calls = 0;
  refused = 0;
  #leases = [];

  constructor(limiter, time, entityId, random, limits) {
    Object.assign(this, { limiter, time, entityId, random, limits });
    this.target = { entityId, resource: RESOURCE };
    this.ideal = undefined;
  }

  async run() {
    const texts = this.limits.map(({ text }) => text);
    await this.limiter.repository.limits.setEntity(this.entityId, texts, { resource: RESOURCE });
    for (let call = 0; call < CALLS; call += 1) {
      this.time.nowMs += anyPause(this.random);
      this.ideal ??= new IdealBucket(this.limits, this.time.nowMs);
      this.ideal.passTo(this.time.nowMs);
      const differs = await this.#step();
      if (differs !== undefined) return `${differs} (call ${call} of ${this.entityId})`;
    }
    return undefined;
  }

  #step() {
    this.calls += 1;
    const what = this.random.next();
    const lease = this.#leases[this.#leases.length - 1];
    if (lease === undefined || what < 0.55) return this.#acquire();
    if (what < 0.7) return this.#adjust(lease);
    if (what < 0.8) return this.#rollBack(lease);
    return this.#look();
  }

  async #acquire() {
    const consume = anyAmounts(this.random, this.limits);
    const { fits, waitMs } = this.ideal.judge(consume);
    const decision = await this.limiter.tryAcquire({ ...this.target, consume });
    if (decision.granted !== fits) return `granted: ${decision.granted}, ideal: ${fits}`;
    if (fits) {
      this.ideal.consume(consume);
      this.#leases.push({ lease: decision.lease, consume });
      return undefined;
    }
    this.refused += 1;
    const retryMs = Math.round(decision.retryAfterSeconds * 1000);
    return retryMs === waitMs ? undefined : `retry after ${retryMs} ms, ideal: ${waitMs}`;
  }

  async #adjust({ lease, consume }) {
    this.#leases.pop();
    const deltas = Object.fromEntries(
      Object.entries(consume).map(([name, amount]) => [
        name,
        this.random.below(amount + 20) - Math.min(amount, 10),
      ]),
    );
    lease.adjust(deltas);
    await lease.commit();
    this.ideal.consume(deltas);
    return undefined;
  }

  async #rollBack({ lease, consume }) {
    this.#leases.pop();
    await lease.rollback();
    this.ideal.consume(Object.fromEntries(Object.entries(consume).map(([n, a]) => [n, -a])));
    return undefined;
  }

  async #look() {
    const ideal = this.ideal.shown();
    const seen = await this.limiter.available(this.target);
    for (const [name, { tokens }] of ideal) {
      if (seen[name] !== tokens) return `available ${name}: ${seen[name]}, ideal: ${tokens}`;
    }
    return undefined;
  }

  /** Compares the totals at the end of a history, on a store whose buckets have not gone. */
  async total() {
    const states = await this.limiter.repository.buckets.list(this.entityId);
    const ideal = this.ideal.shown();
    for (const { limitName, tokens } of states) {
      const is = ideal.get(limitName)?.tokens;
      if (tokens !== is) return `${limitName} has ${tokens}, ideal: ${is}`;
    }
    return undefined;
  }
}

async function attack(store, open) {
  const time = { nowMs: START_MS };
  const limiter = await open(() => time.nowMs);
  const random = seeded(seed);
  const sum = { store, histories: 0, calls: 0, refused: 0, differences: [] };
  const until = performance.now() + secondsEach * 1000;
  while (performance.now() < until && sum.differences.length < 5) {
    const id = `user-${sum.histories}`;
    const history = new History(limiter, time, id, random, anyLimits(random));
    const differs = (await history.run()) ?? (await history.total());
    if (differs !== undefined) sum.differences.push(differs);
    sum.histories += 1;
    sum.calls += history.calls;
    sum.refused += history.refused;
  }
  await limiter.close();
  return sum;
}

const { folder, remove } = scratch();
const engine = await startDynoxide();
const stores = {
  memory: (clock) => RateLimiter.open("memory:", { clock }),
  sqlite: (clock) => RateLimiter.open(`sqlite:${folder}/limits.db`, { clock }),
  dynoxide: async (clock) => {
    const { endpoint } = engine;
    await (await Repository.createTable("histories", { endpoint })).close();
    return RateLimiter.open("dynamodb://histories", { endpoint, clock, timeoutMs: 20_000 });
  },
};
let ok = true;
for (const [name, open] of Object.entries(stores)) {
  const { differences, ...figures } = await attack(name, open);
  console.log(JSON.stringify({ seed, ...figures, differences: differences.length }));
  for (const text of differences) console.log(`  ${name}: ${text}`);
  ok &&= differences.length === 0 && figures.histories > 0;
}
await engine.stop();
remove();
process.exitCode = ok ? 0 : 1;
