/** Weak points that are new in the Python library: they do not occur here. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf, refusalOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, it } from "vitest";
import { describeItemStores } from "../limiter/limiter-stores.ts";

describeItemStores("a weak point of the Python library", (store) => {
  const itemsOf = () => {
    const { items } = store.place;
    if (items === undefined) throw new Error("Buckets are no items here");
    return items;
  };

  itUnless(store.slow)(
    "a cascading child finds every token, in whichever shard it is (N3)",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(["rpd:20/day"]);
      await repo.entities.create({ id: "org" });
      await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
      const call = { entityId: "key-1", resource: "gpt-4", consume: { rpd: 1 } };
      await limiter.acquire({ ...call, consume: { rpd: 8 } });
      const { namespaceId } = repo;
      const target = { namespaceId, entityId: "key-1", resource: "gpt-4" };
      await splitInto(itemsOf(), target, 4, time.clock());
      const fresh = await store.another(subject);
      for (let left = 12; left > 0; left -= 1) await fresh.limiter.acquire(call);
      await refusalOf(fresh.limiter.acquire(call));
      expect(await fresh.limiter.available({ entityId: "key-1", resource: "gpt-4" })).toEqual({
        rpd: 0,
      });
    },
  );

  it("a quota is not turned into a dripping limit by setting its name (N11)", async () => {
    const { repo } = await store.open();
    const golden = pythonItem("40-config-resource-schedules", repo.namespaceId);
    await itemsOf().put(golden);
    const resource = String(golden.resource);
    const set = repo.limits.setResource(resource, ["rpd:100"]);
    const error = await failureOf(set);
    expect(error).toBeInstanceOf(ValidationError);
    expect((error as Error).message).toContain("replaceKind");
    expect(await itemsOf().get(golden, { consistent: true })).toEqual(golden);
  });
});
