/** The stamps that switches leave on buckets. What they grant and refuse is in the contract. */

import { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { SweepIncompleteError } from "@zae-limiter/limiter/domain/errors/sweep-incomplete.ts";
import { resourceConfigKey, resourceRegistryKey } from "@zae-limiter/limiter/records/keys.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { CallCounter } from "@zae-limiter/test-support/stores.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const R = "gpt-4";
const CALL = { entityId: "key-1", resource: R, consume: { rpd: 1 } };
const LIMITS = ["rpd:10/day"];

describeItemStores("the stamps of a switch", (store) => {
  const extra = itUnless(store.slow);

  extra(
    "the stamps of a switch are those of the Python library, and follow each change",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setResource(R, LIMITS);
      await limiter.acquire(CALL);
      await limiter.acquire({ ...CALL, entityId: "key-2" });
      await repo.limits.enable({ entityId: "key-2", resource: R });
      expect(await repo.limits.disable({ resource: R })).toEqual({ stampedBuckets: 1 });
      expect(await store.item(subject, "key-1", R)).toMatchObject({ disabled: true });
      expect(await store.item(subject, "key-2", R)).not.toHaveProperty("disabled");
      expect(await repo.limits.disable({ resource: R })).toEqual({ stampedBuckets: 0 });
      await repo.limits.bypass({ resource: R });
      const item = await store.item(subject, "key-1", R);
      expect(item).not.toHaveProperty("disabled");
      expect(Number(item?.bypass) - time.clock()).toBe(60_000);
      await repo.limits.clear({ resource: R });
      expect(await store.item(subject, "key-1", R)).not.toHaveProperty("bypass");
    },
  );

  it("the stamps of a switch are compared with Python's own items byte for byte", async () => {
    const { repo } = await store.open();
    const items = store.place.items;
    await repo.limits.disable({ entityId: "e1", resource: "r" });
    await repo.limits.disable({ entityId: "e2" });
    await repo.limits.disable({ resource: "zz" });
    for (const golden of pythonItems("72-flag-only-configs-and-registries", repo.namespaceId)) {
      expect(await items?.get(golden, { consistent: true })).toEqual(golden);
    }
    await repo.limits.setResource("dis", ["rpm:100"]);
    await repo.limits.disable({ resource: "dis" });
    await repo.limits.enable({ entityId: "u2", resource: "dis" });
    await repo.limits.bypass({ entityId: "u1", resource: "byp" });
    for (const file of [
      "45-config-resource-disabled",
      "46-config-entity-enabled",
      "48-config-entity-bypass",
    ]) {
      const [golden] = pythonItems(file, repo.namespaceId);
      expect(await items?.get(golden as never, { consistent: true })).toEqual(golden);
    }
    expect((await repo.version())?.clientMinVersion).toBe("0.17.0");
  });

  itUnless(store.name !== "items" && "the test replaces a method of the items in memory")(
    "the stamps of a switch that cannot be written are an error, and change no answer (N1)",
    async () => {
      const isStamp = ({ change }: { change?: { set?: object } }) =>
        change?.set !== undefined && Object.hasOwn(change.set, "disabled");
      const subject = await store.open();
      await subject.repo.limits.setResource(R, LIMITS);
      for (const entityId of ["key-1", "key-2"])
        await subject.limiter.acquire({ ...CALL, entityId });
      const { items } = store.place;
      if (items === undefined) throw new Error("there are no items");
      const { update } = items;
      let stamps = 0;
      items.update = ((key, change, ...rest) => {
        const isBucket = key.SK === "#STATE" && isStamp({ change });
        if (isBucket) stamps += 1;
        if (isBucket && stamps === 2) return Promise.reject(new Error("the table is gone"));
        return update.call(items, key, change, ...rest);
      }) as typeof update;
      try {
        const error = await failureOf(subject.repo.limits.disable({ resource: R }));
        expect(error).toBeInstanceOf(SweepIncompleteError);
        expect(error).toMatchObject({ stampedBuckets: 1, code: "ZAEL_SWEEP_INCOMPLETE" });
      } finally {
        items.update = update;
      }
      for (const entityId of ["key-1", "key-2"]) {
        const call = subject.limiter.acquire({ ...CALL, entityId });
        expect(await failureOf(call)).toBeInstanceOf(ResourceDisabled);
      }
      expect(await subject.repo.limits.disable({ resource: R })).toEqual({ stampedBuckets: 1 });
    },
  );

  extra(
    "the stamps of a switch cost nothing on a warm acquire, and a bypassed one is a single write",
    async () => {
      const counter = new CallCounter();
      const subject = await store.open({ onCall: counter.onCall });
      const { limiter, repo } = subject;
      await repo.limits.setResource(R, LIMITS);
      await repo.limits.bypass({ resource: R });
      for (let round = 0; round < 2; round += 1) await limiter.acquire(CALL);
      expect(await counter.during(() => limiter.acquire({ ...CALL, consume: { rpd: 50 } }))).toBe(
        1,
      );
    },
  );

  extra("the stamps of a switch are kept where a registry has none of them", async () => {
    const { repo } = await store.open();
    const { items } = store.place;
    const key = resourceConfigKey(repo.namespaceId, R);
    await items?.put({ ...key, disabled: true, x_note: "kept" });
    await repo.limits.clear({ resource: R });
    expect(await items?.get(key, { consistent: true })).toEqual({ ...key, x_note: "kept" });
    expect(await items?.get(resourceRegistryKey(repo.namespaceId))).toBeUndefined();
  });
});
