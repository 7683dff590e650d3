/** Puts items until it is killed, and reports each one that was acknowledged. */

import { writeSync } from "node:fs";

const [open, path, round] = process.argv.slice(2);
const { openSqlite } = await import(open);
const { store } = await openSqlite({ path });

for (let at = 0; ; at += 1) {
  const SK = `${round}-${String(at).padStart(8, "0")}`;
  // Every tenth as a batch, whose transaction is larger.
  if (at % 10 === 9) {
    const puts = Array.from({ length: 50 }, (_, part) => ({ PK: `batch ${SK}`, SK: `${part}` }));
    await store.writeMany({ puts });
  }
  await store.put({ PK: "put", SK, filling: "x".repeat(500) });
  // Synchronous, so that no report is lost in the process.
  writeSync(1, `${JSON.stringify(SK)}\n`);
}
