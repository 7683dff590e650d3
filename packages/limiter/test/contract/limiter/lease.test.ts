/** The requests of a lease. What it consumes and refunds is in the contract. */

import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import { expect, it } from "vitest";
import { describeItemStores, milliOf, type Subject } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const TPM = { ...USER, limits: ["tpm:1000"] };

function tokens(subject: Subject, limitName: string) {
  return milliOf(subject, "user-1", RESOURCE, limitName);
}

describeItemStores("the requests of a lease", (store) => {
  /** The requests that `work` makes. */
  async function during(
    work: (subject: Subject, calls: () => string[]) => Promise<unknown>,
  ): Promise<void> {
    const seen: StoreCall[] = [];
    const subject = await store.open({ onCall: (call) => seen.push(call) });
    const calls = () => seen.splice(0).map(({ operation }) => operation);
    await subject.limiter.acquire({ ...TPM, consume: { tpm: 100 } });
    calls();
    await work(subject, calls);
  }

  it("a lease whose amounts do not change in the end makes no request (A079)", () =>
    during(async ({ limiter }, calls) => {
      const lease = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      calls();
      lease.adjust({ tpm: 5 });
      lease.release({ tpm: 5 });
      await lease.flush();
      await lease.commit();
      expect(calls()).toEqual([]);
    }));

  it("the requests of a lease are one for each bucket that was adjusted or refunded (A080)", () =>
    during(async (subject, calls) => {
      const { limiter } = subject;
      const adjusted = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      calls();
      adjusted.adjust({ tpm: 5 });
      await adjusted.commit();
      expect(calls()).toHaveLength(1);
      const back = await limiter.acquire({ ...TPM, consume: { tpm: 10 } });
      await back.consume({ tpm: 10 });
      calls();
      await back.rollback();
      expect(calls()).toHaveLength(1);
      expect(await tokens(subject, "tpm")).toEqual({ balance: 885_000, consumed: 115_000 });
    }));
});
