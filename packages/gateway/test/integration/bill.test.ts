/**
 * Hundreds of calls with hang-ups, retries, lies, stalls and lost answers: what is consumed is
 * compared with the bill of the provider.
 */

import { expect, test } from "vitest";
import { AttackedGateway } from "../attacked-gateway.ts";
import {
  billedCalls,
  type KindReport,
  LoggedTokens,
  tokensInMetrics,
  unknownKinds,
} from "../billed-calls.ts";
import { describeBilled } from "../billed-stores.ts";

const CALLS = 500;
/** DynamoDB Local is slow, and dynoxide runs all of them. */
const CALLS_WHERE_SLOW = 100;
const SEED = 20_261_118;
/** Calls whose usage cannot be known: the answer was lost, or hides a part of it. */
const UNKNOWN = ["lost-answer", "stalled", "hidden-and-left"];
/** How much less than the bill may be consumed in all. */
const MISSING_MAX = 0.01;

const sum = (reports: readonly KindReport[], of: "billed" | "floor" | "consumed") =>
  reports.reduce((total, report) => total + report[of], 0);

describeBilled("the bill", (open, isSlow) => {
  test("what is consumed is never below the bill, and the books agree", async () => {
    const logged = new LoggedTokens();
    const options = { timeoutMs: 2500, accessLog: logged.log };
    const attacked = await AttackedGateway.start(options, undefined, await open());
    const reports = await billedCalls(attacked, isSlow ? CALLS_WHERE_SLOW : CALLS, SEED);
    const shown = reports.map((report) => JSON.stringify(report)).join("\n");
    for (const { kind, consumed, floor } of reports) {
      expect(consumed, `${kind} in\n${shown}`).toBeGreaterThanOrEqual(floor);
      expect(logged.of(kind), `${kind} in the access log`).toBe(consumed);
    }
    const known = reports.filter(({ isKnown }) => isKnown);
    expect(sum(known, "consumed"), shown).toBeGreaterThanOrEqual(
      (1 - MISSING_MAX) * sum(known, "billed"),
    );
    expect(unknownKinds(reports)).toEqual(UNKNOWN);
    expect(await tokensInMetrics(attacked)).toBe(sum(reports, "consumed"));
    expect(await attacked.metric("zae_limiter_gateway_open_requests")).toBe(1);
    await attacked.stop();
    await expect.poll(() => attacked.upstream.openSockets).toBe(0);
  });
});
