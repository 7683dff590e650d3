import { BalanceOperations } from "@zae-limiter/limiter/buckets/balance-operations.ts";
import type { BalanceOperation } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import type { BucketStore } from "@zae-limiter/limiter/buckets/bucket-store.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { expect, test } from "vitest";

const BUCKET = { entityId: "key-1", resource: "gpt-4" } as const;

/** Runs the step of every operation twice, as a store does whose rows have changed meanwhile. */
function steppingTwice(buckets: BucketStore, keys: string[][]): BucketStore {
  const operate = (operation: BalanceOperation) =>
    buckets.operate({
      ...operation,
      recordsOf: (result, made) => {
        const runs = [operation.recordsOf(result, made), operation.recordsOf(result, made)];
        for (const items of runs) keys.push(items.map(({ PK, SK }) => `${PK} ${SK}`));
        return runs[1] as ReturnType<BalanceOperation["recordsOf"]>;
      },
    });
  return new Proxy(buckets, {
    get: (store, name) => (name === "operate" ? operate : Reflect.get(store, name, store)),
  });
}

test("a step of a reset that runs again names the same items", async () => {
  await using repo = await Repository.open("memory:", { clock: () => 1_800_000_000_000 });
  await repo.limits.setResource(BUCKET.resource, ["tpd:100/day"]);
  const { buckets, resolver, records } = repo[INTERNALS];
  const keys: string[][] = [];
  const twice = steppingTwice(buckets, keys);
  await new BalanceOperations(records, repo.audit, resolver, twice).reset(BUCKET);
  expect(keys).toHaveLength(2);
  expect(keys[0]).toHaveLength(2);
  expect(keys[1]).toEqual(keys[0]);
  expect(await repo.audit.list(BUCKET.entityId)).toHaveLength(1);
});
