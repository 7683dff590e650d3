import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  holderOf,
  isOver,
  REMOTE_HOLDERS,
  SlotHolder,
  type SlotsLostWarning,
} from "@zae-limiter/limiter/buckets/slots/slot-holder.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { HolderRecords } from "@zae-limiter/limiter/records/holders.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { afterEach, describe, expect, test } from "vitest";

const START_MS = 1_763_500_000_000;
const PROCESS = { machine: "boot 4026531836", pid: 77, started: "12345" };

const opened: SlotHolder[] = [];
afterEach(async () => {
  for (const holder of opened.splice(0)) await holder.close();
});

/** A holder in virtual time, and the records that it writes. */
function held() {
  const time = new VirtualTime(START_MS);
  const { clock } = time;
  const store = new MemoryItemStore({ clock });
  const records = new HolderRecords(store);
  let writes = 0;
  const delay = { ms: 0, failures: 0, timerMs: 0 };
  const timer: Timer = {
    nowMs: () => time.timer.nowMs(),
    sleep: (ms, signal) => time.timer.sleep(ms + delay.timerMs, signal),
  };
  const counted = {
    write: async (...call: Parameters<HolderRecords["write"]>) => {
      writes += 1;
      if (delay.ms > 0) await timer.sleep(delay.ms);
      if (delay.failures > 0) {
        delay.failures -= 1;
        throw new RateLimiterUnavailable("no answer");
      }
      return records.write(...call);
    },
    remove: (id: string) => records.remove(id),
  };
  const options = { clock, timer, random: Math.random, times: REMOTE_HOLDERS, process: PROCESS };
  const holder = new SlotHolder({ ...options, records: counted });
  opened.push(holder);
  const lost: SlotsLostWarning[] = [];
  holder.onLost((warning) => lost.push(warning));
  return { time, records, holder, lost, delay, writes: () => writes };
}

describe("the record of a holder", () => {
  test("a process writes its record before it holds anything, and reads it back whole", async () => {
    const { holder, records, writes } = held();
    expect(holder.current).toBeUndefined();
    const id = await holder.renew();
    expect(holder.current).toBe(id);
    expect(writes()).toBe(1);
    const untilMs = START_MS + REMOTE_HOLDERS.expiryMs;
    expect(await records.read([id, "other"])).toEqual([
      { id, untilMs, process: PROCESS },
      undefined,
    ]);
    await holder.close();
    expect(await records.read([id])).toEqual([undefined]);
  });

  test("renewals that are asked for at once share a write", async () => {
    const { holder, writes } = held();
    const [one, other] = await Promise.all([holder.renew(), holder.renew()]);
    expect(one).toBe(other);
    expect(writes()).toBe(1);
  });

  test("a call that shares a renewal ends at its own time, and the renewal goes on", async () => {
    const { holder, time, delay, writes } = held();
    delay.ms = 5000;
    const renewal = holder.renew(20_000);
    const call = holder.renew(800).catch((error: Error) => error.message);
    await time.pass(800);
    expect(await call).toBe("The store did not answer in time");
    await time.pass(5000);
    expect(await renewal).toBe(holder.current);
    expect(writes()).toBe(1);
  });

  test("a call that shares a renewal renews by itself where that failed, while it has time", async () => {
    const { holder, time, delay, writes } = held();
    Object.assign(delay, { ms: 100, failures: 1 });
    const first = holder.renew(100).catch((error: unknown) => error);
    const [second, third] = [holder.renew(1000), holder.renew(1000)];
    await time.pass(100);
    await time.pass(100);
    expect(await first).toBeInstanceOf(RateLimiterUnavailable);
    expect(await second).toBe(holder.current);
    expect(await third).toBe(holder.current);
    expect(writes()).toBe(2);
  });

  test("a record is renewed three times a minute, and only while slots are held", async () => {
    const { holder, time, writes } = held();
    const entry = holder.newEntry(await holder.renew());
    holder.add(entry, 2);
    await time.pass(60_000);
    expect(writes()).toBe(4);
    expect(holder.current).toBe(holderOf(entry));
    holder.add(entry, -1);
    await time.pass(20_000);
    expect(writes()).toBe(5);
    holder.add(entry, -1);
    await time.pass(300_000);
    expect(writes()).toBe(5);
    expect(holder.current).toBeUndefined();
  });

  test("a call that comes late in a renewal keeps its slots, though the timer is late", async () => {
    const { holder, time, delay, lost, writes } = held();
    const entry = holder.newEntry(await holder.renew());
    holder.add(entry, 1);
    await time.pass(19_000);
    holder.add(entry, -1);
    // The renewal at 20 s finds that nothing is held; the record is good for a call until 40 s.
    await time.pass(20_999);
    expect(holder.current).toBe(holderOf(entry));
    delay.timerMs = 100;
    holder.add(entry, 1);
    await time.pass(600_000);
    expect(lost).toEqual([]);
    expect(holder.current).toBe(holderOf(entry));
    expect(writes()).toBeLessThanOrEqual(1 + 31);
  });

  test("a store that answers nothing for most of an expiry is asked once more in time", async () => {
    const { holder, time, delay, lost, writes } = held();
    const entry = holder.newEntry(await holder.renew());
    holder.add(entry, 1);
    Object.assign(delay, { ms: 15_000, failures: 1 });
    await time.pass(39_000);
    delay.ms = 0;
    await time.pass(2000);
    expect(writes()).toBe(3);
    expect(holder.current).toBe(holderOf(entry));
    expect(lost).toEqual([]);
  });

  test("a renewal that is answered after the record was over begins another holder", async () => {
    const { holder, time, delay, lost, records } = held();
    const entry = holder.newEntry(await holder.renew());
    holder.add(entry, 2);
    delay.failures = 2;
    await time.pass(59_000);
    // Other processes may have given the slots away before it arrives.
    delay.ms = 10_000;
    const renewal = holder.renew(30_000);
    await time.pass(20_000);
    const id = await renewal;
    expect(lost).toEqual([{ kind: "slots_lost", holderId: holderOf(entry), slots: 2 }]);
    expect(id).not.toBe(holderOf(entry));
    expect(holder.current).toBe(id);
    expect(await records.read([id])).toEqual([
      { id, untilMs: START_MS + 129_000, process: PROCESS },
    ]);
  });

  test("entries of a holder have names of their own, which say whose they are", async () => {
    const { holder } = held();
    const id = await holder.renew();
    const [one, other] = [holder.newEntry(id), holder.newEntry(id)];
    expect(one).not.toBe(other);
    expect([one, other].map(holderOf)).toEqual([id, id]);
  });
});

describe("a holder whose record was over", () => {
  test("a process takes a new id, says how many slots it lost, and never renews the old record", async () => {
    const { holder, time, lost, records } = held();
    const id = await holder.renew();
    holder.add(holder.newEntry(id), 3);
    time.advance(REMOTE_HOLDERS.expiryMs);
    const next = await holder.renew();
    expect(next).not.toBe(id);
    expect(lost).toEqual([{ kind: "slots_lost", holderId: id, slots: 3 }]);
    await time.pass(120_000);
    const [old] = await records.read([id]);
    expect(old?.untilMs).toBe(START_MS + REMOTE_HOLDERS.expiryMs);
  });

  test("late releases of the old id do not count for the new one", async () => {
    const { holder, time, writes } = held();
    const entry = holder.newEntry(await holder.renew());
    holder.add(entry, 1);
    time.advance(REMOTE_HOLDERS.expiryMs);
    const next = holder.newEntry(await holder.renew());
    holder.add(next, 1);
    holder.add(entry, -1);
    const before = writes();
    await time.pass(40_000);
    expect(writes()).toBeGreaterThan(before);
  });

  test("a process that held nothing warns of nothing", async () => {
    const { holder, time, lost } = held();
    await holder.renew();
    time.advance(REMOTE_HOLDERS.expiryMs);
    await holder.renew();
    expect(lost).toEqual([]);
  });
});

describe("a dead holder", () => {
  test("a record is over when its time is, and the clocks may differ", () => {
    const record = { id: "a", untilMs: START_MS };
    expect(isOver(record, REMOTE_HOLDERS, START_MS + REMOTE_HOLDERS.graceMs - 1)).toBe(false);
    expect(isOver(record, REMOTE_HOLDERS, START_MS + REMOTE_HOLDERS.graceMs)).toBe(true);
    expect(isOver(undefined, REMOTE_HOLDERS, 0)).toBe(true);
  });
});
