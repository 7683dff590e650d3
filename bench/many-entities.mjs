// What 100,000 entities with limits of their own cost in one SQLite file: to seed, to open, to
// resolve and to list. Prints a table; `--entities N` changes the number, `--json` the form.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { Repository } from "./dist/modules/index.js";
import {
  entityConfigKey,
  entityConfigPartition,
  inNamespace,
} from "./dist/modules/limiter/records/keys.js";
import { openSqlite } from "./dist/modules/limiter/storage/sqlite/connection.js";

const { values } = parseArgs({
  options: {
    entities: { type: "string", default: "100000" },
    json: { type: "boolean", default: false },
  },
});
const count = Number(values.entities);
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bench-"));
const path = join(folder, "limits.db");
const rows = [];

async function timed(what, times, work) {
  const startedAt = performance.now();
  await work();
  const ms = performance.now() - startedAt;
  rows.push({ what, ms: Number(ms.toFixed(2)), perSecond: Math.round((times / ms) * 1000) });
  if (!values.json) console.error(`${what} …`);
}

/** Returns the limits of one entity, as `limits.setEntity` stores them. */
function config(namespaceId, entityId) {
  const key = entityConfigKey(namespaceId, entityId, "gpt-4");
  return {
    ...key,
    ...inNamespace(namespaceId, key.PK),
    GSI3PK: entityConfigPartition(namespaceId, "gpt-4"),
    GSI3SK: entityId,
    entity_id: entityId,
    resource: "gpt-4",
    config_version: 1,
    l_rpm_cp: 100,
    l_rpm_ra: 100,
    l_rpm_rp: 60,
  };
}

const idOf = (at) => `key-${String(at).padStart(7, "0")}`;

try {
  const first = await Repository.open(`sqlite:${path}`);
  const { namespaceId } = first;
  await first.close();

  const { store } = await openSqlite({ path });
  await timed("seed in bulk", count, async () => {
    for (let start = 0; start < count; start += 5000) {
      const length = Math.min(5000, count - start);
      const puts = Array.from({ length }, (_, at) => config(namespaceId, idOf(start + at)));
      await store.writeMany({ puts });
    }
  });
  await store.close();

  let repo;
  await timed("open", 1, async () => {
    repo = await Repository.open(`sqlite:${path}`);
  });
  const some = Array.from({ length: 10_000 }, (_, at) => idOf((at * 7919) % count));
  await timed("resolve 10,000, cold", some.length, async () => {
    for (const id of some) await repo.limits.resolve(id, "gpt-4");
  });
  await timed("resolve 10,000, warm", some.length, async () => {
    for (const id of some) await repo.limits.resolve(id, "gpt-4");
  });
  let listed = 0;
  await timed("list all, 1,000 a page", count, async () => {
    let cursor;
    do {
      const page = await repo.limits.listEntities("gpt-4", { limit: 1000, cursor });
      listed += page.entityIds.length;
      cursor = page.cursor;
    } while (cursor !== undefined);
  });
  if (listed !== count) throw new Error(`listed ${listed} of ${count}`);
  await repo.close();
  if (values.json) console.log(JSON.stringify(rows));
  else console.table(rows);
} finally {
  rmSync(folder, { recursive: true });
}
