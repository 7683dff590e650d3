/** Live limiters of a namespace that was deleted or purged by another client. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { NamespaceStateError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { failureOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const TTL_MS = 60_000;
const WARM = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
const GIVEN = { ...WARM, entityId: "key-2", limits: ["rpm:1000"] };

/** Opens a limiter with warm buckets, and another client that manages namespaces. */
async function opened(store: StoreUnderTest): Promise<{ live: Subject; admin: Subject }> {
  const live = await store.open();
  await live.repo.limits.setSystem(["rpm:1000"]);
  await live.limiter.acquire(WARM);
  await live.limiter.acquire(GIVEN);
  return { live, admin: await store.another(live) };
}

async function bucketCount({ repo }: Subject, entityId: string): Promise<number> {
  return (await repo.buckets.list(entityId)).length;
}

export function deletedNamespaceContract(store: StoreUnderTest): void {
  const { expect, test } = store.cases;

  async function refused(call: Promise<unknown>, state: string): Promise<void> {
    const error = await failureOf(call);
    expect(error).toBeInstanceOf(NamespaceStateError);
    expect(error).toMatchObject({ state });
  }

  test("a limiter of a deleted namespace refuses within the time of the config cache", async () => {
    const { live, admin } = await opened(store);
    const { namespaceName } = live.repo;
    const lenient = new RateLimiter(live.repo, { onUnavailable: "allow" });
    await admin.repo.namespaces.delete(namespaceName);
    live.time.advance(TTL_MS + 1);
    for (const limiter of [live.limiter, lenient]) {
      await refused(limiter.acquire(WARM), "deleted");
      await refused(limiter.acquire(GIVEN), "deleted");
      await refused(limiter.acquire({ ...WARM, entityId: "key-3" }), "deleted");
      await refused(limiter.tryAcquire(WARM), "deleted");
    }
    expect(await bucketCount(live, "key-3")).toBe(0);
  });

  test("a limiter works again after a recovery, within the time of the config cache", async () => {
    const { live, admin } = await opened(store);
    const { namespaceName, namespaceId } = live.repo;
    await admin.repo.namespaces.delete(namespaceName);
    live.time.advance(TTL_MS + 1);
    await refused(live.limiter.acquire(WARM), "deleted");
    await admin.repo.namespaces.recover(namespaceId);
    live.time.advance(TTL_MS + 1);
    await live.limiter.acquire(WARM);
    await live.limiter.acquire(GIVEN);
  });

  test("a limiter creates no bucket after a purge, even before its config cache expires", async () => {
    const { live, admin } = await opened(store);
    const { namespaceName, namespaceId } = live.repo;
    await admin.repo.namespaces.delete(namespaceName);
    await admin.repo.namespaces.purge(namespaceId);
    await refused(live.limiter.acquire(WARM), "unregistered");
    await refused(live.limiter.acquire(GIVEN), "unregistered");
    live.time.advance(TTL_MS + 1);
    await refused(live.limiter.acquire(WARM), "unregistered");
    await refused(live.limiter.acquire({ ...WARM, entityId: "key-3" }), "unregistered");
    for (const id of ["key-1", "key-2", "key-3"]) expect(await bucketCount(live, id)).toBe(0);
  });

  test("a limiter refuses at once in the process that deletes the namespace", async () => {
    const { live } = await opened(store);
    await live.repo.namespaces.delete(live.repo.namespaceName);
    await refused(live.limiter.acquire(WARM), "deleted");
    await live.repo.namespaces.recover(live.repo.namespaceId);
    await live.limiter.acquire(WARM);
  });
}
