/**
 * Many distinct ids within an hour of the clock: memory must stay level, and limits exact.
 * Arguments: ids, and seconds after which it ends with fewer.
 */
import { RateLimiter } from "../../bench/dist/modules/index.js";

const ids = Number(process.argv[2] ?? 2_000_000);
const untilMs = performance.now() + 1000 * Number(process.argv[3] ?? 3600);
const HOUR_MS = 3_600_000;
const MEGABYTE = 2 ** 20;

let nowMs = Date.parse("2026-11-16T10:00:00Z");
const startMs = nowMs;
const limiter = await RateLimiter.open("memory:", { clock: () => nowMs });
await limiter.repository.limits.setSystem(["rpm:60"]);
const request = (entityId) => ({ entityId, resource: "api", consume: { rpm: 1 } });

let regular = 0;
let guests = 0;
let highest = 0;
const readings = [];
let done = 0;
for (let id = 0; id < ids && performance.now() < untilMs; id += 1) {
  done += 1;
  nowMs = startMs + Math.floor((id * HOUR_MS) / ids);
  if ((await limiter.tryAcquire(request(`2001:db8::${id.toString(16)}`))).granted) guests += 1;
  // One entity asks all the time, far beyond its limit.
  if (id % 20 === 0 && (await limiter.tryAcquire(request("regular"))).granted) regular += 1;
  if (id % Math.ceil(ids / 20) === 0) {
    globalThis.gc?.();
    const used = process.memoryUsage().heapUsed / MEGABYTE;
    highest = Math.max(highest, used);
    readings.push(Math.round(used));
  }
}
// A full bucket, and one token for each second until the last question.
const lastAskedMs = startMs + Math.floor(((done - 1 - ((done - 1) % 20)) * HOUR_MS) / ids);
const expected = 60 + Math.floor((lastAskedMs - startMs) / 1000);
const { total } = await limiter.repository.usage.summary({ resource: "api", window: "hourly" });
const report = {
  ids: done,
  virtualMinutes: Math.round((60 * done) / ids),
  heapMegabytes: readings,
  highestMegabytes: Math.round(highest),
  rssMegabytes: Math.round(process.memoryUsage().rss / MEGABYTE),
  guestsGranted: guests,
  regularGranted: regular,
  regularExpected: expected,
  usageCounted: total.rpm,
  usageExpected: guests + regular,
};
console.log(JSON.stringify(report));
await limiter.close();
const ok =
  highest < 300 &&
  guests === done &&
  Math.abs(regular - expected) <= 1 &&
  total.rpm === guests + regular;
process.exitCode = ok ? 0 : 1;
