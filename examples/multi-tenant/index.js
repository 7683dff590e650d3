/** Keys, projects and a tenant: each has a limit, and a call consumes from all three. */

import { RateLimiter } from "zae-limiter";

const limiter = await RateLimiter.open(process.env.LIMITER_URL ?? "memory:");
const { entities, limits } = limiter.repository;

await limits.ensureSystem(["rpd:10/day"]); // for keys without limits of their own
await limits.ensureEntity("acme", ["rpd:25/day"]);
await limits.ensureEntity("acme-search", ["rpd:15/day"]);
await entities.ensure({ id: "acme" });
await entities.ensure({ id: "acme-search", parentId: "acme", cascade: true });
await entities.ensure({ id: "key-1", parentId: "acme-search", cascade: true });
await entities.ensure({ id: "key-2", parentId: "acme-search", cascade: true });

/** Calls until a limit refuses, and says which one did. */
async function callAsOftenAsPossible(entityId) {
  for (let calls = 0; ; calls += 1) {
    const request = { entityId, resource: "search", consume: { rpd: 1 } };
    const decision = await limiter.tryAcquire(request);
    if (!decision.granted) {
      const refusedBy = decision.violations.map((violation) => violation.entityId);
      return { entityId, calls, refusedBy };
    }
    await decision.lease.commit();
  }
}

/** Each key has 10 calls, and their project 15: the second key gets the rest. */
export const results = [await callAsOftenAsPossible("key-1"), await callAsOftenAsPossible("key-2")];
for (const { entityId, calls, refusedBy } of results) {
  console.log(`${entityId}: ${calls} calls, then refused by ${refusedBy.join(", ")}`);
}
const left = await limiter.available({ entityId: "acme", resource: "search" });
console.log(`acme has ${left.rpd} calls left`);
await limiter.close();
