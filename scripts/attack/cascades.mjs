/**
 * Clients that cascade through three levels at the same time; hardly anything refills meanwhile.
 * None may end as unavailable without a fault.
 *
 * A refusal is wrong when, with every call counted that was granted and began before the refusal
 * ended, all levels had enough. It is within the bound when calls that were refused elsewhere held
 * the rest for a moment, at most a second before: then the store has shown too little. All others
 * are failures. Arguments: clients, callers, rounds, seed.
 */
import { RateLimiter, Repository } from "../../bench/dist/modules/index.js";
import { startDynoxide } from "../../bench/support.mjs";
import { seeded } from "./random.mjs";

const [clients, callers, rounds] = [4, 24, 40].map((usual, at) =>
  Number(process.argv[2 + at] ?? usual),
);
const seed = Number(process.argv[5] ?? Date.now() % 1_000_000_007);
const PROJECTS = 4;
const KEYS = 12;
const CALLS = 300;
/** For so long a state that the store has shown may refuse. */
const BOUND_MS = 1000;
/** Tokens of each level in a round; its calls ask for 900 in all. */
const CAPACITY = { org: 540, project: 150, key: 55 };

const legsOf = (round, key) => [
  [`key-${round}-${key}`, CAPACITY.key],
  [`project-${round}-${key % PROJECTS}`, CAPACITY.project],
  [`org-${round}`, CAPACITY.org],
];

/** The statuses of refusals that cached states decided. */
const fromCache = new WeakSet();

/** Creates a hierarchy, with the limits of each level. */
async function build({ entities, limits }, round) {
  const create = async (id, parentId, capacity) => {
    await entities.create({ id, ...(parentId && { parentId, cascade: true }) });
    await limits.setEntity(id, [`n:${capacity}/day`]);
  };
  await create(`org-${round}`, undefined, CAPACITY.org);
  const numbers = (count) => Array.from({ length: count }, (_, at) => at);
  for (const at of numbers(PROJECTS)) {
    await create(`project-${round}-${at}`, `org-${round}`, CAPACITY.project);
  }
  for (const at of numbers(KEYS)) {
    await create(`key-${round}-${at}`, `project-${round}-${at % PROJECTS}`, CAPACITY.key);
  }
}

/** Starts all callers at once; returns every call with its answer and its time. */
async function storm(limiters, round, random) {
  const done = [];
  const failures = [];
  let begun = 0;
  const lane = async (_, caller) => {
    while (begun < CALLS) {
      begun += 1;
      const key = random.below(KEYS);
      const amount = 1 + random.below(5);
      const startedAt = performance.now();
      const request = { entityId: `key-${round}-${key}`, resource: "api", consume: { n: amount } };
      try {
        const decision = await limiters[caller % clients].tryAcquire(request);
        const { granted } = decision;
        const local = !granted && fromCache.has(decision.statuses);
        done.push({ key, amount, granted, local, startedAt, endedAt: performance.now() });
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, lane));
  return { done, failures };
}

/** Keeps the amounts that calls consumed, or held, by level. */
class Book {
  #sums = new Map();

  constructor(round, calls = []) {
    this.round = round;
    for (const call of calls) this.add(call);
  }

  add({ key, amount }) {
    for (const [id] of legsOf(this.round, key)) {
      this.#sums.set(id, (this.#sums.get(id) ?? 0) + amount);
    }
  }

  isEnoughFor({ key, amount }) {
    const left = ([id, capacity]) => capacity - (this.#sums.get(id) ?? 0);
    return legsOf(this.round, key).every((leg) => left(leg) >= amount);
  }
}

/** Counts the refusals that were wrong, and those of them that nothing explains. */
function wrongRefusals(round, done) {
  const refused = done.filter(({ granted }) => !granted);
  const granted = done.filter(({ granted }) => granted);
  const before = (refusal) => granted.filter(({ startedAt }) => startedAt < refusal.endedAt);
  const during = (refusal) =>
    refused.filter(
      (other) =>
        other !== refusal &&
        other.endedAt >= refusal.startedAt - BOUND_MS &&
        other.startedAt < refusal.endedAt,
    );
  const wrong = refused.filter((refusal) => new Book(round, before(refusal)).isEnoughFor(refusal));
  const unexplained = wrong.filter((refusal) =>
    new Book(round, [...before(refusal), ...during(refusal)]).isEnoughFor(refusal),
  );
  return {
    wrong: wrong.length,
    wrongFromCache: wrong.filter(({ local }) => local).length,
    unexplained: unexplained.length,
  };
}

/** Whether every level was charged what was granted below it, and no more than it has. */
async function booksAreRight({ buckets }, round, done) {
  const told = new Map();
  for (const { key, amount, granted } of done) {
    if (!granted) continue;
    for (const leg of legsOf(round, key)) {
      told.set(leg[0], { amount: (told.get(leg[0])?.amount ?? 0) + amount, capacity: leg[1] });
    }
  }
  for (const [id, { amount, capacity }] of told) {
    const states = await buckets.list(id);
    const total = states.reduce((sum, { totalConsumed }) => sum + totalConsumed, 0);
    if (total !== amount || amount > capacity) return false;
  }
  return true;
}

const engine = await startDynoxide();
const { endpoint } = engine;
const root = await Repository.createTable("cascades", { endpoint, timeoutMs: 60_000 });
const events = (event) => {
  if (event.type === "rejected" && event.local) fromCache.add(event.statuses);
};
const options = { endpoint, timeoutMs: 60_000, events };
const open = () => RateLimiter.open("dynamodb://cascades", options);
const limiters = await Promise.all(Array.from({ length: clients }, open));
const random = seeded(seed);
const sums = { calls: 0, refused: 0, wrong: 0, wrongFromCache: 0, unexplained: 0, unavailable: 0 };
let books = true;
for (let round = 0; round < rounds; round += 1) {
  await build(root, round);
  const { done, failures } = await storm(limiters, round, random);
  for (const error of failures) console.log(String(error));
  sums.calls += done.length + failures.length;
  sums.refused += done.filter(({ granted }) => !granted).length;
  for (const [name, count] of Object.entries(wrongRefusals(round, done))) sums[name] += count;
  sums.unavailable += failures.length;
  books &&= failures.length > 0 || (await booksAreRight(root, round, done));
}
const share = (all) => `${((100 * sums.wrong) / Math.max(1, all)).toFixed(2)} %`;
const wrongOf = { refusals: share(sums.refused), calls: share(sums.calls) };
console.log(JSON.stringify({ seed, clients, callers, ...sums, wrongOf, books }));
await Promise.all([...limiters, root].map((one) => one.close()));
await engine.stop();
process.exitCode = sums.unavailable === 0 && sums.unexplained === 0 && books ? 0 : 1;
