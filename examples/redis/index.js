/** Two machines share one limit by a Redis or Valkey that both have, by way of their own clients. */

import { Redis } from "ioredis";
import { RateLimiter, Repository } from "zae-limiter";
import { redis } from "zae-limiter/redis";

const url = process.env.REDIS_URL ?? "redis://localhost:6379";
const prefix = process.env.LIMITER_PREFIX ?? "example:";

/** Opens what one machine has: a client for its own commands, of which the limiter makes another. */
async function machine() {
  const client = new Redis(url);
  const repository = await Repository.over(redis(client, { prefix }), { namespace: "example" });
  return { client, limiter: new RateLimiter(repository) };
}

const machines = [await machine(), await machine()];
const [{ limiter: first }] = machines;
const { entities, limits } = first.repository;
await limits.ensureSystem(["rpd:3/day"]);
await entities.ensure({ id: "team", cascade: true });
await entities.ensure({ id: "key-1", parentId: "team", cascade: true });

/** Six calls by turns: the server decides for key and team at once, so three of them pass. */
export const granted = [];
for (let call = 0; call < 6; call += 1) {
  const { limiter } = machines[call % 2];
  const request = { entityId: "key-1", resource: "search", consume: { rpd: 1 } };
  const decision = await limiter.tryAcquire(request);
  granted.push(decision.granted);
  console.log(`machine ${(call % 2) + 1}: ${decision.granted ? "granted" : "refused"}`);
}

// The client is yours: the limiter ends nothing but its own.
for (const { limiter, client } of machines) {
  await limiter.close();
  client.disconnect();
}
