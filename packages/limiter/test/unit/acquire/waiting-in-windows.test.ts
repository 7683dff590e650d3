/** Calls that wait while a window of their limit opens or closes. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { describe, expect, test } from "vitest";
import { STORES } from "./both-stores.ts";

const NINE_MS = Date.parse("2027-01-15T09:00Z");
const CALL = { entityId: "key", resource: "api" };
const LIMIT = Limit.parse("rpm:60/min:100").withSchedule([{ when: "9-10", scale: 0.5 }]);

describe.each(Object.entries(STORES))("calls that wait on %s", (_, open) => {
  /** Notes the seconds from nine o'clock at which each of these calls is granted. */
  async function waited(amounts: readonly number[], fromMs: number, forMs: number) {
    const time = new VirtualTime();
    const limiter = await time.until(open(time));
    await time.until(limiter.repository.limits.setSystem([LIMIT]));
    await time.pass(NINE_MS - time.nowMs + fromMs);
    const { rpm = 0 } = await time.until(limiter.available(CALL));
    await time.until(limiter.acquire({ ...CALL, consume: { rpm } }));
    const granted: number[] = [];
    for (const amount of amounts) {
      const call = { ...CALL, consume: { rpm: amount }, maxWaitSeconds: 120 };
      void limiter.acquire(call).then(
        () => granted.push((time.nowMs - NINE_MS) / 1000),
        () => granted.push(Number.NaN),
      );
    }
    await time.pass(forMs);
    await time.until(limiter.close());
    return granted;
  }

  test("a call that waits when a window opens gets what is left at the slower rate", async () => {
    // Ten seconds before nine; 15 tokens take 10 of these, and 10 more at half a token a second.
    const [first = 0, second = 0] = await waited([15, 5], -10_000, 40_000);
    expect(first).toBeGreaterThanOrEqual(10);
    expect(first).toBeLessThan(11.5);
    expect(second).toBeGreaterThanOrEqual(20);
    expect(second).toBeLessThan(21.5);
  });

  test("a call for more than the open window holds waits until it has closed", async () => {
    const [granted = 0] = await waited([60], 3_600_000 - 20_000, 100_000);
    // Ten come in the last twenty seconds, and fifty in as many seconds after ten.
    expect(granted).toBeGreaterThanOrEqual(3650);
    expect(granted).toBeLessThan(3652);
  });
});
