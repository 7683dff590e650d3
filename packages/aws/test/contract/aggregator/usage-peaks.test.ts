/** The suite of slots that are held, on items whose usage an aggregator counts. */

import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { changeOf, ONLY_GENERATION } from "@zae-limiter/aws/aggregator/stream-change.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { slotsHeldContract } from "@zae-limiter/testing/limiter-contract/kinds/slots-held.ts";
import { StoreUnderTest } from "@zae-limiter/testing/limiter-contract/subject.ts";
import * as vitest from "vitest";

const store = new StoreUnderTest(vitest, { slots: true });
vitest.beforeAll(() => store.opened({ open, close: async () => {} }));
slotsHeldContract(store);

/** Opens a store of its own, whose changes are counted before usage is read. */
async function open(options: Parameters<typeof overTable>[1] = {}): Promise<Repository> {
  const { clock = () => 0 } = options;
  const items = new MemoryItemStore({ clock });
  const repo = await overTable(items, options);
  const aggregator = new Aggregator({ store: items, clock, log: () => undefined });
  const count = async () => {
    const { item } = await items.update({ PK: "end", SK: "end" }, { add: { number: 1 } });
    const changes = [];
    for await (const record of items.changes({ from: "oldest" })) {
      changes.push(changeOf(record, ONLY_GENERATION));
      if (record.key.PK === item?.PK && record.after?.number === item.number) break;
    }
    await aggregator.process(changes);
  };
  const snapshots: Repository["usage"]["snapshots"] = async (query) => {
    await count();
    return repo.usage.snapshots(query);
  };
  return new Proxy(repo, {
    get: (target, name) => {
      if (name === "usage") return { snapshots };
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}
