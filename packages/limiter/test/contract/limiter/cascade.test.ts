/** Entities that were written past the records. Cascades are in the contract. */

import { invalidityOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { CHILD, family } from "@zae-limiter/testing/limiter-contract/family.ts";
import { expect } from "vitest";
import { describeLimiterStores } from "./limiter-stores.ts";

describeLimiterStores("cascade", (store) => {
  itUnless(store.slow)("a circle that was written past the records is refused", async () => {
    const subject = await store.open();
    if (!store.distributed) return;
    const { limiter, repo } = subject;
    await family(subject, "child", "parent");
    await repo.limits.setSystem(["rpm:100"]);
    const key = { PK: `${repo.namespaceId}/ENTITY#parent`, SK: "#META" };
    await store.place.items?.update(key, { set: { parent_id: "child", cascade: true } });
    const error = await invalidityOf(limiter.acquire({ ...CHILD, consume: { rpm: 1 } }));
    expect(error.field).toBe("parent_id");
  });
});
