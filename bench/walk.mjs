/**
 * Lists the files whose code a warm acquire on DynamoDB and its commit run, by V8's own count of
 * calls. Fails when there are more than the bound: the centre is read in this order (ARCHITECTURE).
 */

import { fileURLToPath } from "node:url";
import { MODULES, startCounting } from "./calls.mjs";
import { startDynoxide } from "./support.mjs";
import { openTable, warmAcquire } from "./walks.mjs";

const FILES_MAX = 57;

process.env.AWS_ACCESS_KEY_ID = "local";
process.env.AWS_SECRET_ACCESS_KEY = "local";
const engine = await startDynoxide();
const limiter = await openTable(engine.endpoint);
const count = await startCounting();
const files = await count(await warmAcquire(limiter));
await limiter.close();
await engine.stop();

for (const { path } of files) console.log(path);
console.log(`${files.length} files, at most ${FILES_MAX}; compiled in ${fileURLToPath(MODULES)}`);
if (files.length > FILES_MAX) process.exitCode = 1;
