// One process that takes from chains of buckets in every order, and says what it has got. Its clock
// is hours away from those of processes with other seeds.
// Arguments: the built package, the address of the store, milliseconds at least, a seed.

import { setImmediate as turn } from "node:timers/promises";
import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, duration, seed] = process.argv;
const { now } = Date;
Date.now = () => now() + (Number(seed) - 3) * 3_600_000;
const { RateLimiter } = await import(index);
const openingMs = performance.now();
const limiter = await RateLimiter.open(url, { timeoutMs: 20_000 });
const openedInMs = performance.now() - openingMs;
const ENTITIES = ["a", "b", "c"];
const AT_ONCE = 8;
/** A busy machine goes on until each outcome has been met that often. */
const EACH_MIN = 3;
let state = Number(seed);
const random = () => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return (state >> 8) / 0x7fffff;
};
const int = (from, to) => from + Math.floor(random() * (to - from + 1));

await limiter.status({ entityId: "a", resource: "api" });
await startingShot();
const startedMs = performance.now();
const consumed = {};
const counts = { granted: 0, refused: 0, ended: 0, failed: [] };
const count = (part, sign) => {
  for (const [name, amount] of Object.entries(part.consume)) {
    const key = `${part.entityId} ${name}`;
    consumed[key] = (consumed[key] ?? 0) + sign * amount;
  }
};

async function once() {
  const chain = ENTITIES.map((entityId) => ({ entityId, at: random() }))
    .sort((one, other) => one.at - other.at)
    .slice(0, int(1, 3))
    .map(({ entityId }) => ({
      entityId,
      resource: "api",
      consume: { small: int(1, 3), large: int(50, 900) },
    }));
  const [first, ...also] = chain;
  const { granted, lease } = await limiter.tryAcquire({ ...first, also });
  if (!granted) {
    counts.refused += 1;
    return turn();
  }
  counts.granted += 1;
  for (const part of chain) count(part, 1);
  const how = random();
  if (how > 0.3) return lease.commit();
  counts.ended += 1;
  if (how < 0.2) {
    await lease.rollback();
    for (const part of chain) count(part, -1);
    return undefined;
  }
  const more = { entityId: first.entityId, consume: { large: int(-50, 50) } };
  lease.adjust(more.consume);
  await lease.commit();
  return count(more, 1);
}

const isOver = () =>
  performance.now() - startedMs > Number(duration) &&
  [counts.granted, counts.refused, counts.ended].every((count) => count >= EACH_MIN);

await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (!isOver()) {
      try {
        await once();
      } catch (error) {
        counts.failed.push(String(error));
        return;
      }
    }
  }),
);
await limiter.close();
console.log(JSON.stringify({ consumed, openedInMs, ...counts }));
