/** Large runs of the gateway's proofs: `npm run soak:gateway` prints their figures. */

import { expect, test } from "vitest";
import { AttackedGateway } from "../attacked-gateway.ts";
import { billedCalls } from "../billed-calls.ts";
import { describeBilled } from "../billed-stores.ts";
import { expectHarmless } from "../fuzzed/harmless.ts";

const REQUESTS = 100_000;
const CALLS = 5000;
const CALLS_WHERE_SLOW = 500;
const HOUR_MS = 3_600_000;
/** Another one each time, printed, so that a failure can be repeated. */
const SEED = Number(process.env.ZAEL_SEED ?? Date.now() % 1_000_000);

test("100,000 hostile requests cost little and break nothing", { timeout: HOUR_MS }, async () => {
  console.log(`seed ${SEED}`);
  const reports = await expectHarmless(REQUESTS, SEED);
  console.table(
    reports.map(({ calls, callsMax, heapGrowthBytes, delayMs, statuses, among, ...report }) => ({
      ...report,
      calls: Math.round(10 * calls) / 10,
      callsMax: Math.round(callsMax),
      heapKib: Math.round(heapGrowthBytes / 1024),
      delayMs: Math.round(delayMs),
      statuses: JSON.stringify(statuses),
      among: JSON.stringify(among),
    })),
  );
});

describeBilled("a long bill", (open, isSlow) => {
  test("what is consumed is never below the bill", { timeout: HOUR_MS }, async () => {
    const attacked = await AttackedGateway.start({ timeoutMs: 5000 }, undefined, await open());
    const reports = await billedCalls(attacked, isSlow ? CALLS_WHERE_SLOW : CALLS, SEED);
    console.log(`seed ${SEED}`);
    console.table(reports);
    for (const { consumed, floor, kind } of reports) {
      expect(consumed, kind).toBeGreaterThanOrEqual(floor);
    }
    await attacked.stop();
  });
});
