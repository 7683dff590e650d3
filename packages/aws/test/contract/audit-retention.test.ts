/** How long audits are kept is set for a whole table, when it is deployed. */

import { writeRecords } from "@zae-limiter/aws/stack/table-records.ts";
import { systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { auditPartition } from "@zae-limiter/limiter/records/keys.ts";
import {
  NamespaceRecords,
  NO_FOLLOWER,
} from "@zae-limiter/limiter/records/namespaces/namespaces.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describeStores, newName, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const NOW = Date.parse("2030-01-01T00:00:00Z");
const clock = () => NOW;

/** Writes the setting of `deploy --audit-retention-days` into the table. */
async function deployed(store: TestStore, days: number): Promise<void> {
  const context = { store: store.items, clock, random: systemRandom, onWarning: () => undefined };
  const namespaces = new NamespaceRecords(context, NO_FOLLOWER);
  await writeRecords(
    { store: store.items, namespaces, clock },
    { aggregatorVersion: null, namespaces: [], auditRetentionDays: days, updatedBy: "test" },
  );
}

async function daysKept(store: TestStore, repo: Repository, subject: string): Promise<number[]> {
  const events = await store.itemsOf(auditPartition(repo.namespaceId, subject));
  return events.map(({ ttl }) => (Number(ttl) - NOW / 1000) / 86_400);
}

describeStores("the audit retention of a table", (store) => {
  it("the audit retention of a table holds for namespaces that are registered after it was set", async () => {
    await deployed(store, 400);
    const repo = await store.open({ clock, namespace: newName() });
    await repo.entities.create({ id: "key-1" });
    await repo.limits.setResource("gpt-4", ["rpm:5"]);
    expect(await daysKept(store, repo, "key-1")).toEqual([400]);
    expect(await daysKept(store, repo, "$RESOURCE:gpt-4")).toEqual([400]);
    await deployed(store, 30);
    repo.limits.invalidateCache();
    await repo.entities.create({ id: "key-2" });
    expect(await daysKept(store, repo, "key-2")).toEqual([30]);
  });
});
