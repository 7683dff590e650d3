/**
 * Limits that come with a call replace the stored ones of the entity for that call. It works like a
 * change of that bucket: balances are kept, capped by the new capacity; nothing is removed, and the
 * next call without them goes by the stored ones again.
 */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { milliOf } from "./balances.ts";
import { invalidityOf, lines, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };

export function overrideContract(store: StoreUnderTest): void {
  const { expect, extra, test, testEach } = store.cases;

  test("limits that come with a call are enough where nothing is stored (A124)", async () => {
    const { limiter } = await store.open();
    const lease = await limiter.acquire({ ...USER, limits: ["rpm:100"], consume: { rpm: 75 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 75/25"]);
  });

  testEach(store.variants([false, true]))(
    "apply although the bucket exists, and are gone afterwards (looking first: %s)",
    async (looking) => {
      const subject = await store.open({ speculativeWrites: !looking });
      const { limiter, repo } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      // Balance kept, capped by the new capacity.
      const limits = [Limit.perDay("rpm", 10)];
      const refusal = await refusalOf(limiter.acquire({ ...USER, limits, consume: { rpm: 50 } }));
      expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 50/10!"]);
      expect(refusal.retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
      // A refusal writes nothing, so the balance is what it was.
      expect(await limiter.available(USER)).toEqual({ rpm: 90 });
      const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 4 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 4/6"]);
      const again = await limiter.acquire({ ...USER, limits, consume: { rpm: 4 } });
      expect(lines(again.statuses)).toEqual(["user-1/gpt-4 rpm 4/2"]);
      // Back to the stored ones: the balance stays what the bucket has.
      const back = await limiter.acquire({ ...USER, consume: { rpm: 2 } });
      expect(lines(back.statuses)).toEqual(["user-1/gpt-4 rpm 2/0"]);
      expect(back.statuses[0]?.limit.toString()).toBe("rpm:100/min");
      subject.time.advance(6000);
      expect(await limiter.available(USER)).toEqual({ rpm: 10 });
      expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({
        consumed: 20_000,
      });
    },
  );

  extra("limits that come with a call give no tokens when they are larger", async () => {
    const { limiter, repo, time } = await store.open();
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 90 } });
    const limits = ["rpm:1000"];
    await refusalOf(limiter.acquire({ ...USER, limits, consume: { rpm: 11 } }));
    await limiter.acquire({ ...USER, limits, consume: { rpm: 10 } });
    time.advance(60_000);
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 500 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 500/500"]);
    // The stored capacity caps what is left.
    const back = await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(lines(back.statuses)).toEqual(["user-1/gpt-4 rpm 1/99"]);
  });

  extra(
    "limits that come with a call take nothing from anybody when they are refused",
    async () => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      await limiter.acquire({ ...USER, consume: { rpm: 40 } });
      for (const limit of ["rpm:5", "rpm:10/min:500", "rpm:1/min:500"]) {
        await refusalOf(limiter.acquire({ ...USER, limits: [limit], consume: { rpm: 499 } }));
      }
      time.advance(6000);
      expect(await limiter.available(USER)).toEqual({ rpm: 70 });
    },
  );

  extra(
    "limits that come with a call remove nothing: a limit that comes back finds its balance",
    async () => {
      const { limiter, repo } = await store.open();
      await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10, tpm: 900 } });
      const limits = ["rpm:100", "burst:5"];
      const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 1, burst: 5 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/89", "user-1/gpt-4 burst 5/0"]);
      const back = await limiter.acquire({ ...USER, consume: { tpm: 100 } });
      expect(lines(back.statuses)).toEqual(["user-1/gpt-4 rpm 0/89", "user-1/gpt-4 tpm 100/0"]);
      // And so does the limit of the call when it comes again.
      await refusalOf(limiter.acquire({ ...USER, limits, consume: { burst: 1 } }));
    },
  );

  extra("limits that come with a call are all there is where nothing is stored", async () => {
    const { limiter } = await store.open();
    const limits = ["rpm:10"];
    await limiter.acquire({ ...USER, limits, consume: { rpm: 3 } });
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 3 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 3/4"]);
    await invalidityOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
  });

  extra(
    "limits that come with a call are kept by ancestors only where they have none of their own",
    async () => {
      const { limiter, repo } = await store.open();
      await repo.entities.create({ id: "top" });
      await repo.entities.create({ id: "team", parentId: "top", cascade: true });
      await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
      await repo.limits.setEntity("team", ["rpm:50"]);
      const request = { ...USER, limits: ["rpm:10", "tpm:100"], consume: { rpm: 2, tpm: 30 } };
      for (const [own, team, tpm] of [
        [8, 48, 70],
        [6, 46, 40],
      ]) {
        const lease = await limiter.acquire(request);
        expect(lines(lease.statuses)).toEqual([
          `user-1/gpt-4 rpm 2/${own}`,
          `user-1/gpt-4 tpm 30/${tpm}`,
          `team/gpt-4 rpm 2/${team}`,
          `top/gpt-4 rpm 2/${own}`,
          `top/gpt-4 tpm 30/${tpm}`,
        ]);
      }
    },
  );

  extra("limits that come with a call count for everything that asks with them", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 40 } });
    const limits = ["rpm:50", "tpm:7"];
    expect(await limiter.available({ ...USER, limits })).toEqual({ rpm: 50, tpm: 7 });
    expect(lines(await limiter.status({ ...USER, limits }))).toEqual([
      "user-1/gpt-4 rpm 0/50",
      "user-1/gpt-4 tpm 0/7",
    ]);
    const needed = { rpm: 51 };
    expect(await limiter.timeUntilAvailable({ ...USER, limits, needed })).toBe(
      Number.POSITIVE_INFINITY,
    );
    // Asking has changed nothing.
    expect(await limiter.available(USER)).toEqual({ rpm: 60 });
    const lease = await limiter.acquire({ ...USER, limits, consume: { rpm: 1 } });
    await lease.consume({ tpm: 7 });
    lease.adjust({ rpm: 4 });
    await lease.commit();
    expect(await limiter.available({ ...USER, limits })).toEqual({ rpm: 45, tpm: 0 });
  });

  extra("limits that come with a call are checked like any others", async () => {
    const { limiter } = await store.open();
    for (const limits of [["rpm"], ["rpm:1", "rpm:2"], "rpm:1", [7], ["wcu:1"]]) {
      const request = { ...USER, limits: limits as string[], consume: {} };
      await invalidityOf(limiter.acquire(request));
      await invalidityOf(limiter.status(request));
    }
  });

  extra(
    "limits that come with a call may be none at all: then nothing can be asked for",
    async () => {
      const { limiter, repo } = await store.open();
      await repo.limits.setSystem(["rpm:1"]);
      const lease = await limiter.acquire({ ...USER, limits: [], consume: {} });
      expect(lease.statuses).toEqual([]);
      await invalidityOf(limiter.acquire({ ...USER, limits: [], consume: { rpm: 1 } }));
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    },
  );

  extra("limits that come with a call do not hide a change of the stored ones", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    const limits = ["rpm:20"];
    await limiter.acquire({ ...USER, limits, consume: { rpm: 1 } });
    await repo.limits.setSystem(["rpm:200"]);
    await limiter.acquire({ ...USER, limits, consume: { rpm: 1 } });
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 1/17"]);
    expect(lease.statuses[0]?.limit.capacity).toBe(200);
    const states = await repo.buckets.list("user-1");
    expect(states.map(({ limitName, capacity }) => [limitName, capacity])).toEqual([["rpm", 200]]);
  });
}
