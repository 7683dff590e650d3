/** Work under a lease: whatever happens to it, the books are right afterwards. */

import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import type { OnError } from "@zae-limiter/limiter/acquire/on-error.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "./balances.ts";
import { fail, failureOf, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const REQUEST = { ...USER, limits: ["rpm:100", "tpm:1000"], consume: { rpm: 1, tpm: 500 } };

/** Reads what is left of `rpm` and `tpm` and what was consumed, in tokens. */
async function books(subject: Subject): Promise<string> {
  const [rpm, tpm] = await Promise.all(
    ["rpm", "tpm"].map((name) => milliOf(subject, "user-1", RESOURCE, name)),
  );
  const show = (milli: typeof rpm) =>
    milli === undefined ? "none" : `${milli.balance / 1000} left ${milli.consumed / 1000} used`;
  return `rpm ${show(rpm)}, tpm ${show(tpm)}`;
}

const UNTOUCHED = "rpm 100 left 0 used, tpm 1000 left 0 used";

const WARNING = { kind: "amount_missing", ...USER, limitName: "tpm" } as const;

class UserError extends Error {}

export function runContract(store: StoreUnderTest): void {
  const { expect, extra, extraEach, test } = store.cases;

  test("run hands on the result and writes the adjustments", async () => {
    const subject = await store.open();
    const result = await subject.limiter.run(REQUEST, async (lease) => {
      lease.adjust({ tpm: 320 - 500 });
      return "hello";
    });
    expect(result).toBe("hello");
    expect(await books(subject)).toBe("rpm 99 left 1 used, tpm 680 left 320 used");
  });

  extra("run keeps the estimate when a provider reported no usage at all, and warns", async () => {
    const warnings: LimiterWarning[] = [];
    const subject = await store.open({ onWarning: (warning) => warnings.push(warning) });
    const usages: ({ tpm: number } | null | undefined)[] = [undefined, null];
    for (const usage of usages) {
      await subject.limiter.run(REQUEST, async (lease) => {
        lease.settle(usage as { tpm: number });
        lease.adjust(usage as { tpm: number });
      });
    }
    expect(await books(subject)).toBe("rpm 98 left 2 used, tpm 0 left 1000 used");
    expect(warnings.filter(({ kind }) => kind !== "amount_missing")).toEqual([]);
    expect(warnings.length).toBe(2 * 2 * 2);
  });

  test("run refunds everything when the work throws, and rethrows (A054)", async () => {
    const subject = await store.open();
    const error = new UserError("mine");
    const run = subject.limiter.run(REQUEST, async (lease) => {
      await lease.consume({ tpm: 100 });
      lease.adjust({ rpm: 7 });
      await lease.flush();
      lease.adjust({ tpm: 7 });
      throw error;
    });
    expect(await failureOf(run)).toBe(error);
    expect(await books(subject)).toBe(UNTOUCHED);
    const thrown = subject.limiter.run(REQUEST, () => {
      throw error;
    });
    expect(await failureOf(thrown)).toBe(error);
    expect(await books(subject)).toBe(UNTOUCHED);
  });

  extraEach(["commit", "rollback"] as const)(
    "run leaves a lease alone that the work has settled by %s, also when it throws",
    async (end) => {
      const subject = await store.open();
      const error = new UserError("mine");
      await subject.limiter.run(REQUEST, (lease) => lease[end]());
      const once = end === "commit" ? "rpm 99 left 1 used, tpm 500 left 500 used" : UNTOUCHED;
      expect(await books(subject)).toBe(once);
      const run = subject.limiter.run(REQUEST, async (lease) => {
        await lease[end]();
        throw error;
      });
      expect(await failureOf(run)).toBe(error);
      const twice = end === "commit" ? "rpm 98 left 2 used, tpm 0 left 1000 used" : UNTOUCHED;
      expect(await books(subject)).toBe(twice);
    },
  );

  extra("run throws the refusal, and does not start the work", async () => {
    const { limiter } = await store.open();
    let started = false;
    const run = limiter.run({ ...REQUEST, consume: { tpm: 1001 } }, () => {
      started = true;
    });
    await refusalOf(run);
    expect(started).toBe(false);
  });

  test("run returns the value of work whose signal aborts after the grant, and keeps its costs", async () => {
    const subject = await store.open();
    const abort = new AbortController();
    const request = { ...REQUEST, signal: abort.signal };
    const streamed = await subject.limiter.run(request, async (lease) => {
      lease.adjust({ tpm: 200 });
      await lease.flush();
      abort.abort(new UserError("the client hung up"));
      lease.settle({ tpm: 800 });
      return "what was streamed so far";
    });
    expect(streamed).toBe("what was streamed so far");
    expect(await books(subject)).toBe("rpm 99 left 1 used, tpm 200 left 800 used");
  });

  extra("run commits what was used when the work throws and onError says so", async () => {
    const subject = await store.open();
    const error = new UserError("the client hung up");
    const asked: unknown[] = [];
    const decide: OnError = (thrown) => {
      asked.push(thrown);
      return "commit";
    };
    for (const [times, onError] of (["commit", decide] as const).entries()) {
      const run = subject.limiter.run({ ...REQUEST, onError }, async (lease) => {
        lease.adjust({ tpm: -200 });
        throw error;
      });
      expect(await failureOf(run)).toBe(error);
      const tpm = 300 * (times + 1);
      expect(await books(subject)).toBe(
        `rpm ${99 - times} left ${times + 1} used, tpm ${1000 - tpm} left ${tpm} used`,
      );
    }
    expect(asked).toEqual([error]);
  });

  extra("run refunds everything when onError says so, for this error", async () => {
    const subject = await store.open();
    const error = new UserError("mine");
    const onError = (thrown: unknown) => (thrown === error ? "rollback" : "commit");
    const run = subject.limiter.run({ ...REQUEST, onError }, () => Promise.reject(error));
    expect(await failureOf(run)).toBe(error);
    expect(await books(subject)).toBe(UNTOUCHED);
  });

  extra("run refuses an invalid onError before anything is consumed", async () => {
    const { limiter, repo } = await store.open();
    for (const onError of ["refund", null, 1]) {
      const request = { ...REQUEST, onError: onError as OnError };
      const run = limiter.run(request, () => fail("it started"));
      expect(await failureOf(run)).toMatchObject({ field: "onError" });
    }
    expect(await repo.buckets.list("user-1")).toEqual([]);
  });

  extra("run keeps the estimate when the cost of the work is unknown", async () => {
    const warnings: LimiterWarning[] = [];
    const subject = await store.open({ onWarning: (warning) => warnings.push(warning) });
    const usage: { total?: number } = {};
    await subject.limiter.run(REQUEST, (lease) => lease.settle({ tpm: usage.total }));
    await subject.limiter.run(REQUEST, (lease) => lease.adjust({ tpm: Number(usage.total) - 500 }));
    expect(await books(subject)).toBe("rpm 98 left 2 used, tpm 0 left 1000 used");
    expect(warnings).toEqual([
      { ...WARNING, operation: "settle", amount: undefined },
      { ...WARNING, operation: "adjust", amount: Number.NaN },
    ]);
  });

  extra("run does not start with a signal that was aborted before", async () => {
    const { limiter, repo } = await store.open();
    const reason = new UserError("too late");
    const request = { ...REQUEST, signal: AbortSignal.abort(reason) };
    expect(await failureOf(limiter.run(request, () => fail("it started")))).toBe(reason);
    expect(await failureOf(limiter.acquire(request))).toBe(reason);
    expect(await failureOf(limiter.tryAcquire(request))).toBe(reason);
    expect(await repo.buckets.list("user-1")).toEqual([]);
  });

  extra("run refunds what was granted while the signal aborted", async () => {
    const subject = await store.open();
    await (await subject.limiter.acquire(REQUEST)).rollback();
    const abort = new AbortController();
    const reason = new UserError("just now");
    const acquire = subject.limiter.acquire({ ...REQUEST, signal: abort.signal });
    abort.abort(reason);
    expect(await failureOf(acquire)).toBe(reason);
    expect(await books(subject)).toBe(UNTOUCHED);
  });

  extra("run does not mistake an error of the work for one of the store", async () => {
    const subject = await store.open({ onUnavailable: "allow" });
    const error = new InfrastructureError("of another store, which the work uses");
    const run = subject.limiter.run(REQUEST, () => Promise.reject(error));
    expect(await failureOf(run)).toBe(error);
    expect(await books(subject)).toBe(UNTOUCHED);
  });

  extra("run refuses a signal that is not an AbortSignal", async () => {
    const { limiter } = await store.open();
    for (const signal of [null, {}, "now"]) {
      const request = { ...REQUEST, signal: signal as unknown as AbortSignal };
      expect(await failureOf(limiter.acquire(request))).toMatchObject({ field: "signal" });
    }
  });
}

export function awaitUsingContract(store: StoreUnderTest): void {
  const { expect, extra } = store.cases;

  extra("await using commits when the block ends, also by a throw", async () => {
    const subject = await store.open();
    {
      await using lease = await subject.limiter.acquire(REQUEST);
      lease.adjust({ tpm: -400 });
    }
    expect(await books(subject)).toBe("rpm 99 left 1 used, tpm 900 left 100 used");
    const error = new UserError("mine");
    const block = async () => {
      await using lease = await subject.limiter.acquire(REQUEST);
      lease.adjust({ tpm: -400 });
      throw error;
    };
    expect(await failureOf(block())).toBe(error);
    expect(await books(subject)).toBe("rpm 98 left 2 used, tpm 800 left 200 used");
  });

  extra("await using does nothing with a lease that was settled", async () => {
    const subject = await store.open();
    {
      await using lease = await subject.limiter.acquire(REQUEST);
      await lease.rollback();
    }
    expect(await books(subject)).toBe(UNTOUCHED);
  });
}

export function closeContract(store: StoreUnderTest): void {
  const { expect, extra } = store.cases;

  extra("close refuses everything afterwards, and says so", async () => {
    const { limiter } = await store.open();
    await limiter.acquire(REQUEST);
    await limiter.close();
    const calls = [
      limiter.acquire(REQUEST),
      limiter.tryAcquire(REQUEST),
      limiter.run(REQUEST, () => fail("it started")),
      limiter.status({ ...USER, limits: ["rpm:1"] }),
      limiter.available({ ...USER, limits: ["rpm:1"] }),
      limiter.timeUntilAvailable({ ...USER, limits: ["rpm:1"], needed: { rpm: 1 } }),
    ];
    for (const call of calls) {
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(InfrastructureError);
      expect(String(error)).toContain("closed");
    }
    expect(await limiter.isAvailable()).toBe(false);
    await limiter.close();
  });

  extra("close refuses calls that wait", async () => {
    const { limiter, time } = await store.open({ virtualTimer: true });
    await limiter.acquire({ ...REQUEST, consume: { tpm: 1000 } });
    const waits = [1, 2].map((tpm) =>
      failureOf(limiter.acquire({ ...REQUEST, consume: { tpm }, maxWaitSeconds: 10 })),
    );
    await time.pass(10);
    await limiter.close();
    for (const error of await Promise.all(waits)) {
      expect(error).toBeInstanceOf(InfrastructureError);
      expect(String(error)).toContain("closed");
    }
  });

  extra("a limiter closes at the end of an await using block", async () => {
    const { limiter } = await store.open();
    {
      await using own = limiter;
      await own.acquire(REQUEST);
    }
    expect(await failureOf(limiter.acquire(REQUEST))).toBeInstanceOf(InfrastructureError);
  });
}
