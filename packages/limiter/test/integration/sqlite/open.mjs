/** Opens files that are not there yet, one after the other, and leaves an item in each. */

import { startingShot } from "./starting-shot.mjs";

const [open, name, ...paths] = process.argv.slice(2);
const { openSqlite } = await import(open);

await startingShot();
for (const path of paths) {
  const { store } = await openSqlite({ path, timeoutMs: 20_000 });
  await store.put({ PK: "opened", SK: name });
  await store.close();
}
console.log(JSON.stringify("done"));
