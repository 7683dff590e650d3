/** The item that an acquire leaves. Everything else about acquires is in the contract. */

import { expect, it } from "vitest";
import { describeItemStores } from "./limiter-stores.ts";

const RESOURCE = "openai/gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };

describeItemStores("an acquire", (store) => {
  it("an acquire leaves the item that the reference would have left (A063)", async () => {
    const subject = await store.open();
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    const item = await store.item(subject, "user-1", RESOURCE);
    const ns = repo.namespaceId;
    expect(item).toEqual({
      PK: `${ns}/BUCKET#user-1#${RESOURCE}#0`,
      SK: "#STATE",
      GSI2PK: `${ns}/RESOURCE#${RESOURCE}`,
      GSI2SK: "BUCKET#user-1#0",
      GSI3PK: `${ns}/ENTITY#user-1`,
      GSI3SK: `BUCKET#${RESOURCE}#0`,
      GSI4PK: ns,
      GSI4SK: `BUCKET#user-1#${RESOURCE}#0`,
      entity_id: "user-1",
      resource: RESOURCE,
      rf: time.nowMs,
      cascade: false,
      shard_count: 1,
      ttl: expect.any(Number),
      cv: 1,
      cs: "system",
      ac: 1,
      b_rpm_tk: 99_000,
      b_rpm_cp: 100_000,
      b_rpm_ra: 100_000,
      b_rpm_rp: 60_000,
      b_rpm_tc: 1000,
      b_wcu_tk: 1_000_000,
      b_wcu_cp: 1_000_000,
      b_wcu_ra: 1_000_000,
      b_wcu_rp: 1000,
      b_wcu_tc: 0,
    });
  });
});
