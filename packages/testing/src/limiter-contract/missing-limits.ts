/**
 * Names in `consume` that the entity has no limit for: an error, or ignored where that is asked.
 */

import type { MissingLimits } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import { milliOf } from "./balances.ts";
import { family } from "./family.ts";
import { invalidityOf, lines, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const RESOURCE = "gpt-4";
const KEY = { entityId: "key-1", resource: RESOURCE };
const BOTH = { ...KEY, consume: { rpm: 1, tpm: 500 } };

/** Sets both limits for the resource, and for the entity limits without `tpm`. */
async function raised(subject: Subject): Promise<void> {
  await subject.repo.limits.setResource(RESOURCE, ["rpm:10", "tpm:1000"]);
  await subject.repo.limits.setEntity("key-1", ["rpm:100"], { resource: RESOURCE });
}

/** Reads the net consumption in tokens; `undefined` when the bucket has no such limit. */
async function used(subject: Subject, entityId: string, name: string): Promise<number | undefined> {
  const milli = await milliOf(subject, entityId, RESOURCE, name);
  return milli === undefined ? undefined : milli.consumed / 1000;
}

export function missingLimitsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a name without a limit is an error that names the limits there are, and nothing is consumed", async () => {
    const subject = await store.open();
    await raised(subject);
    for (const missingLimits of [undefined, "error"] as const) {
      const error = await invalidityOf(subject.limiter.acquire({ ...BOTH, missingLimits }));
      expect(error.message).toContain('there is no limit "tpm"');
      expect(error.message).toContain("the limits are rpm");
    }
    expect(await subject.repo.buckets.list("key-1")).toEqual([]);
  });

  test("a name without a limit is unlimited for the entity where the call ignores missing limits", async () => {
    const subject = await store.open();
    await raised(subject);
    const request = { ...BOTH, missingLimits: "ignore" } as const;
    for (const times of [1, 2, 3]) {
      const lease = await subject.limiter.acquire(request);
      expect(lease.consumed).toEqual({ rpm: 1 });
      lease.settle({ rpm: 1, tpm: 730 });
      lease.adjust({ tpm: -900 });
      await lease.consume({ tpm: 5000 });
      await lease.commit();
      expect(await used(subject, "key-1", "rpm")).toBe(times);
    }
    expect(await used(subject, "key-1", "tpm")).toBeUndefined();
  });

  extra("a name without a limit is ignored in every call of a limiter that says so", async () => {
    const subject = await store.open({ missingLimits: "ignore" });
    await raised(subject);
    const { limiter } = subject;
    const lease = await limiter.acquire(BOTH);
    lease.settle({ tpm: 3 });
    await lease.commit();
    await (await limiter.acquire(BOTH)).rollback();
    expect(await used(subject, "key-1", "rpm")).toBe(1);
    expect(await limiter.timeUntilAvailable({ ...KEY, needed: { tpm: 9999 } })).toBe(0);
    await invalidityOf(limiter.acquire({ ...BOTH, missingLimits: "error" }));
    // Waiting for the limits that are there is the same as without the name.
    const refusal = await refusalOf(
      limiter.acquire({ ...KEY, consume: { rpm: 100, tpm: 1 }, maxWaitSeconds: 0.1 }),
    );
    expect(lines(refusal.violations)).toEqual(["key-1/gpt-4 rpm 100/99!"]);
  });

  test("a name without a limit still counts for an ancestor that has the limit, and is corrected there", async () => {
    const subject = await store.open({ missingLimits: "ignore" });
    await raised(subject);
    await family(subject, "key-1", "project");
    const lease = await subject.limiter.acquire(BOTH);
    expect(await used(subject, "project", "tpm")).toBe(500);
    lease.settle({ tpm: 730 });
    await lease.flush();
    expect(await used(subject, "project", "tpm")).toBe(730);
    lease.release({ tpm: 30 });
    await lease.commit();
    expect(await used(subject, "project", "tpm")).toBe(700);
    const refusal = await refusalOf(subject.limiter.acquire(BOTH));
    expect(lines(refusal.violations)).toEqual(["project/gpt-4 tpm 500/300!"]);
    expect(await used(subject, "key-1", "rpm")).toBe(1);
  });

  extra(
    "a name without a limit must have a proper amount although it is ignored, also when warm",
    async () => {
      const subject = await store.open({ missingLimits: "ignore" });
      await raised(subject);
      const { limiter } = subject;
      for (const times of [1, 2]) {
        await limiter.acquire({ ...BOTH, maxWaitSeconds: 0 });
        for (const tpm of [Number.NaN, -1, 0.5]) {
          const error = await invalidityOf(limiter.acquire({ ...KEY, consume: { rpm: 1, tpm } }));
          expect(error.field).toBe("consume.tpm");
        }
        expect(await used(subject, "key-1", "rpm")).toBe(times);
      }
    },
  );

  extra("a name without a limit is an error or ignored, and there is no third way", async () => {
    const { limiter } = await store.open();
    for (const missingLimits of ["allow", null, true]) {
      const error = await invalidityOf(
        limiter.acquire({ ...BOTH, missingLimits: missingLimits as MissingLimits }),
      );
      expect(error.field).toBe("missingLimits");
    }
  });
}
