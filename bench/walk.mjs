/**
 * Lists the files whose code a warm acquire on DynamoDB and its commit run, by V8's own count of
 * calls. Fails when there are more than the bound: the centre is read in this order (ARCHITECTURE).
 */

import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { startDynoxide } from "./support.mjs";

const FILES_MAX = 63;
const ROOT = new URL("./dist/modules/", import.meta.url);
const { RateLimiter, Repository } = await import(new URL("index.js", ROOT).href);

process.env.AWS_ACCESS_KEY_ID = "local";
process.env.AWS_SECRET_ACCESS_KEY = "local";
const engine = await startDynoxide();
const { endpoint } = engine;
const table = await Repository.createTable("walk", { endpoint, region: "us-east-1" });
await table.limits.setSystem(["rpm:1000000/sec", "tpm:1000000/sec"]);
await table.close();
const limiter = await RateLimiter.open("dynamodb://walk?region=us-east-1", { endpoint });

async function acquire() {
  const consume = { rpm: 1, tpm: 2 };
  const lease = await limiter.acquire({ entityId: "user", resource: "api", consume });
  await lease.commit();
}

for (let left = 50; left > 0; left -= 1) await acquire();
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
await session.post("Profiler.takePreciseCoverage");
await acquire();
const { result } = await session.post("Profiler.takePreciseCoverage");
await limiter.close();
await engine.stop();

const files = result
  .filter(({ url }) => url.startsWith(ROOT.href))
  .filter(({ functions }) => functions.some(isCalled))
  .map(({ url }) => url.slice(ROOT.href.length).replace(/js$/, "ts"))
  .sort();

/** The module itself counts as a function that begins with the file. */
function isCalled({ functionName, ranges: [range] }) {
  return range.count > 0 && (functionName !== "" || range.startOffset > 0);
}

for (const file of files) console.log(file);
console.log(`${files.length} files, at most ${FILES_MAX}; compiled in ${fileURLToPath(ROOT)}`);
if (files.length > FILES_MAX) process.exitCode = 1;
