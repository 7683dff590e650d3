/** Goes through everything a driver is used for, and reports what it saw. */

import { readdirSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";

const [open, path, driver] = process.argv.slice(2);
const { openSqlite } = await import(open);
const options = { path, driver, timeoutMs: 50 };

const refusal = (error) => `${error.code} ${error.message.replaceAll(dirname(path), "")}`;
const key = { PK: "a", SK: "b" };
const seen = {};

async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

const { store, database } = await openSqlite(options);
const item = { ...key, text: "\u{1f600} \u0000", big: 2n ** 70n, ttl: 4_000_000_000, GSI2PK: "g" };
seen.put = await store.put({ ...item, GSI2SK: "1" });
seen.update = (await store.update(key, { add: { big: 1n } })).item?.big === 2n ** 70n + 1n;
seen.refused = (await store.put(item, [{ is: "absent", name: "PK" }])).ok;
await store.writeMany({ puts: Array.from({ length: 450 }, (_, at) => ({ PK: "q", SK: `${at}` })) });
seen.queried = (await collect(store.query({ partition: "q" }))).length;
seen.index = await collect(store.query({ index: "GSI2", partition: "g" }));
seen.absent = (await store.get({ PK: "a", SK: "c" })) === undefined;

// Another connection has the lock, and this one must take that for what it is.
const other = await openSqlite(options);
await other.database.write(() => {
  seen.busy = typeof database.tryWrite(() => "written");
});
// A reader is in nobody's way.
other.database.prepare("BEGIN").run();
other.database.prepare("SELECT * FROM items").get();
seen.meanwhile = await database.write(() => "written while another connection reads");
other.database.prepare("COMMIT").run();
seen.rollback = await database
  .write(() => {
    database.prepare("DELETE FROM items WHERE pk <> ?").run("");
    throw new Error("rolled back");
  })
  .catch((error) => error.message);
await other.store.close();
await store.close();
seen.closed = await store.get(key).catch(refusal);

const again = await openSqlite(options);
seen.kept = (await again.store.get(key))?.text === item.text;
seen.feed = (await again.store.changes({ from: "oldest" }).next()).value.after.text === item.text;
await again.store.close();
// What is in the file after closing it, apart from what libsql holds on to.
seen.files = readdirSync(dirname(path)).filter((name) => name === basename(path));

writeFileSync(`${path}.txt`, "no database, but long enough to be taken for one. ".repeat(100));
seen.foreign = await openSqlite({ ...options, path: `${path}.txt` }).catch(refusal);
seen.directory = await openSqlite({ ...options, path: dirname(path) }).catch((error) => error.code);

console.log(JSON.stringify(seen));
