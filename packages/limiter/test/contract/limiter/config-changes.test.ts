/** Changes of stored limits, as the items of buckets show them, and when a bucket cannot follow. */

import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { Faults, isBucketOf } from "./faults.ts";
import { describeItemStores, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const OWN = { resource: RESOURCE };

/** The limits of the bucket, as `name tokens/capacity`. */
async function bucket({ repo }: Subject, entityId = "user-1"): Promise<string[]> {
  const states = await repo.buckets.list(entityId, { resource: RESOURCE });
  return states.map((state) => `${state.limitName} ${state.tokens}/${state.limit}`).sort();
}

describeItemStores("a change of limits", (store) => {
  it("a change of limits shows in the item at once, in milli-tokens (A140)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const item = () => store.item(subject, "user-1", RESOURCE);
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await repo.limits.setEntity("user-1", ["rpm:200"], OWN);
    expect(await item()).toMatchObject({ b_rpm_tk: 90_000, b_rpm_cp: 200_000, b_rpm_tc: 10_000 });
    await repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    expect(await item()).toMatchObject({ b_rpm_cp: 100_000 });
    await repo.limits.setEntity("user-1", ["rpm:200/hour", "tpm:5"], OWN);
    expect(await item()).toMatchObject({
      b_rpm_ra: 200_000,
      b_rpm_rp: 3_600_000,
      b_tpm_tk: 5000,
      b_tpm_cp: 5000,
      cs: "entity",
    });
  });

  it("a change of limits leaves no attribute of a limit that is gone (A146)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100", "my-limit.v2:7"]);
    await limiter.acquire({ ...USER, consume: { "my-limit.v2": 3 } });
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    const names = Object.keys((await store.item(subject, "user-1", RESOURCE)) ?? {});
    expect(names.filter((name) => name.startsWith("b_my-limit"))).toEqual([]);
    expect(names).toContain("b_rpm_tk");
  });

  it("a change of limits fails when the live bucket cannot follow, and can be repeated (A143)", async () => {
    const faults = new Faults();
    const subject = await store.open({ faults });
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    faults.next("denied", isBucketOf("user-1", "update"));
    const set = () => repo.limits.setEntity("user-1", ["rpm:50"], OWN);
    expect(await failureOf(set())).toMatchObject({ name: "InfrastructureError" });
    expect((await repo.limits.getEntity("user-1", OWN)).map(String)).toEqual(["rpm:50/min"]);
    await set();
    expect(await bucket(subject)).toEqual(["rpm 50/rpm:50/min"]);
  });
});
