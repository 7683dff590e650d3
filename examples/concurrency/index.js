/** Three processes share ten slots: at no time are more than ten renderings under way. */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { RateLimiter } from "zae-limiter";

const PROCESSES = 3;
const CALLS = 20;
const [, script, given] = process.argv;
const isChild = script === fileURLToPath(import.meta.url) && given !== undefined;
const file = isChild ? given : join(mkdtempSync(join(tmpdir(), "slots-")), "limits.db");
const limiter = await RateLimiter.open(`sqlite:${file}`);
const call = { entityId: "studio", resource: "render" };

/** Renders: waits for a slot, holds it while it works, and says how many were taken then. */
async function render() {
  const request = { ...call, consume: { parallel: 1 }, maxWaitSeconds: 60 };
  return limiter.run(request, async (lease) => {
    const [status] = lease.statuses;
    await setTimeout(20);
    return status.limit.capacity - status.available;
  });
}

/** Starts one more process of this program, and returns what its renderings have seen. */
async function started() {
  const child = fork(fileURLToPath(import.meta.url), [file]);
  const [taken] = await once(child, "message");
  return taken;
}

/** How many slots were taken when each rendering began, over all processes. */
export let seen = [];
if (isChild) {
  const taken = await Promise.all(Array.from({ length: CALLS }, render));
  process.send(taken);
  process.disconnect();
} else {
  await limiter.repository.limits.setResource("render", ["parallel:10 concurrent"]);
  seen = (await Promise.all(Array.from({ length: PROCESSES }, started))).flat();
  console.log(`${seen.length} renderings, at most ${Math.max(...seen)} at once`);
}
await limiter.close();
