/** Counts one item up as fast as it can, and reports how often, and how long the worst call took. */

import { startingShot } from "./starting-shot.mjs";

const [open, path, durationMs] = process.argv.slice(2);
const { openSqlite } = await import(open);
const { store } = await openSqlite({ path, timeoutMs: 20_000 });

await startingShot();
let count = 0;
let waitMsMax = 0;
for (const end = performance.now() + Number(durationMs); performance.now() < end; count += 1) {
  const startedAt = performance.now();
  await store.update({ PK: "counter", SK: "#" }, { add: { count: 1 } });
  waitMsMax = Math.max(waitMsMax, performance.now() - startedAt);
}
await store.close();
console.log(JSON.stringify({ count, waitMsMax }));
