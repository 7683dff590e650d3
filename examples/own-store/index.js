// A limiter on a store of your own: keys of a project, which share its limit.

import { RateLimiter, Repository } from "zae-limiter";
import { MapTable } from "./map-table.js";

const limiter = new RateLimiter(await Repository.over(new MapTable()));
const { entities, limits } = limiter.repository;
await limits.ensureSystem(["rpd:100/day", "tpd:1000/day"]);
await entities.ensure({ id: "project" });
await entities.ensure({ id: "key-1", parentId: "project", cascade: true });

const request = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 1, tpd: 300 } };
await limiter.run(request, (lease) => lease.settle({ tpd: 120 }));

const { rpd, tpd } = await limiter.available({ entityId: "project", resource: "gpt-4" });
console.log(`The project has ${rpd} requests and ${tpd} tokens left today`);
await limiter.close();
