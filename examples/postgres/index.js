/** Two machines share one limit by a database that both have, by way of their own pools. */

import pg from "pg";
import { RateLimiter, Repository } from "zae-limiter";
import { postgres } from "zae-limiter/postgres";

const url = process.env.DATABASE_URL ?? "postgres://postgres@localhost/postgres";
const schema = process.env.LIMITER_SCHEMA ?? "zae_limiter";

// Once, by a user that may create a schema; also `zae-limiter db migrate` or `zae-limiter db sql`.
const address = new URL(url);
address.searchParams.set("schema", schema);
await Repository.migrate(address.href);

/** Opens what one machine has: a pool for its own statements, which the limiter uses too. */
async function machine() {
  const pool = new pg.Pool({ connectionString: url });
  const repository = await Repository.over(postgres(pool, { schema }), { namespace: "example" });
  return { pool, limiter: new RateLimiter(repository) };
}

const machines = [await machine(), await machine()];
const [{ limiter: first }] = machines;
const { entities, limits } = first.repository;
await limits.ensureSystem(["rpd:3/day"]);
await entities.ensure({ id: "key-1" });

/** Six calls by turns: the database decides, so three of them pass. */
export const granted = [];
for (let call = 0; call < 6; call += 1) {
  const { limiter } = machines[call % 2];
  const request = { entityId: "key-1", resource: "search", consume: { rpd: 1 } };
  const decision = await limiter.tryAcquire(request);
  granted.push(decision.granted);
  console.log(`machine ${(call % 2) + 1}: ${decision.granted ? "granted" : "refused"}`);
}

// The pool is yours: the limiter ends nothing but itself.
for (const { limiter, pool } of machines) {
  await limiter.close();
  await pool.end();
}
