/**
 * The contract of a limiter on a store, as tests: balances, leases, cascades, waits, changes of
 * limits. Every test has a namespace of its own, with a clock that the test moves; none sleeps.
 */

import type { TestRunner } from "../test-runner.ts";
import { acquireContract, refusedRequestsContract, statusesContract } from "./acquire.ts";
import { balanceOperationsContract } from "./balance-operations.ts";
import { cascadeContract } from "./cascade.ts";
import { cascadePolicyContract, moveContract } from "./cascade-policy.ts";
import { childrenContract } from "./children.ts";
import { configChangesContract, otherClientChangesContract } from "./config-changes.ts";
import { deletedNamespaceContract } from "./deleted-namespace.ts";
import { eventsContract } from "./events.ts";
import { alertsContract } from "./kinds/alerts.ts";
import { quotasContract } from "./kinds/quotas.ts";
import { quotasEverywhereContract } from "./kinds/quotas-everywhere.ts";
import { schedulesContract } from "./kinds/schedules.ts";
import { sessionsContract } from "./kinds/sessions.ts";
import { slotsContract } from "./kinds/slots.ts";
import { slotsHeldContract } from "./kinds/slots-held.ts";
import { slotsWaitingContract } from "./kinds/slots-waiting.ts";
import { leaseContract } from "./lease.ts";
import { leaseCorrectionsContract } from "./lease-corrections.ts";
import { missingLimitsContract } from "./missing-limits.ts";
import { overrideContract } from "./override.ts";
import { alsoContract } from "./parts/also.ts";
import { alsoEntitiesContract } from "./parts/also-entities.ts";
import { moneyTotalsContract } from "./parts/money-totals.ts";
import { totalsContract, totalsLeaseContract } from "./parts/totals.ts";
import { readsContract, resourceBucketsContract } from "./reads.ts";
import { refillContract } from "./refill.ts";
import { awaitUsingContract, closeContract, runContract } from "./run.ts";
import { softContract } from "./soft.ts";
import { type LimiterContractOptions, type OpenedLimiterStore, StoreUnderTest } from "./subject.ts";
import { switchesContract } from "./switches.ts";
import { ttlContract } from "./ttl.ts";
import { longWaitContract, waitingContract } from "./waiting.ts";

type Suite = (store: StoreUnderTest) => void;

const SUITES: readonly (readonly [string, Suite])[] = [
  ["acquire", acquireContract],
  ["statuses", statusesContract],
  ["refused requests", refusedRequestsContract],
  ["lease", leaseContract],
  ["corrections of a lease", leaseCorrectionsContract],
  ["run", runContract],
  ["await using", awaitUsingContract],
  ["close", closeContract],
  ["cascade", cascadeContract],
  ["cascade policy", cascadePolicyContract],
  ["move to another parent", moveContract],
  ["limits for children", childrenContract],
  ["changes of limits", configChangesContract],
  ["changes by another client", otherClientChangesContract],
  ["waiting", waitingContract],
  ["a very long wait", longWaitContract],
  ["limits of a call", overrideContract],
  ["switches", switchesContract],
  ["reads", readsContract],
  ["buckets of a resource", resourceBucketsContract],
  ["refill", refillContract],
  ["missing limits", missingLimitsContract],
  ["soft limits", softContract],
  ["quotas", quotasContract],
  ["quotas with everything else", quotasEverywhereContract],
  ["sessions", sessionsContract],
  ["schedules", schedulesContract],
  ["alerts", alertsContract],
  ["slots", slotsContract],
  ["how long slots are held", slotsHeldContract],
  ["waiting for slots", slotsWaitingContract],
  ["time to live", ttlContract],
  ["several resources", alsoContract],
  ["several entities", alsoEntitiesContract],
  ["totals", totalsContract],
  ["totals in money", moneyTotalsContract],
  ["leases with totals", totalsLeaseContract],
  ["resets and top-ups", balanceOperationsContract],
  ["deleted namespace", deletedNamespaceContract],
  ["events", eventsContract],
];

/**
 * Declares the tests that a limiter must pass on every store, with the functions of the test
 * runner. They need a store that keeps what it acknowledged: `itemStoreContract` shows that first.
 *
 * @example
 * ```ts
 * import { mkdtemp, rm } from 'node:fs/promises';
 * import { tmpdir } from 'node:os';
 * import { join } from 'node:path';
 * import { Repository } from 'zae-limiter';
 * import { limiterContract, type TestRunner } from 'zae-limiter/testing';
 *
 * // Call it with `import * as vitest from 'vitest'`, or with the globals of Jest.
 * export function testMyStore(runner: TestRunner): void {
 *   limiterContract(runner, 'a file', async () => {
 *     const folder = await mkdtemp(join(tmpdir(), 'limits-'));
 *     return {
 *       open: (options) => Repository.open(`sqlite:${folder}/limits.db`, options),
 *       close: () => rm(folder, { recursive: true }),
 *     };
 *   });
 * }
 * ```
 */
export function limiterContract(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedLimiterStore>,
  options: LimiterContractOptions = {},
): void {
  onStore(runner, name, open, options, (store) => {
    for (const [title, suite] of SUITES) runner.describe(title, () => suite(store));
  });
}

/**
 * Declares the tests of the contract that are about single acquires.
 *
 * @internal Only tests use it.
 */
export function singleAcquireContract(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedLimiterStore>,
  options: LimiterContractOptions,
): void {
  onStore(runner, name, open, options, acquireContract);
}

function onStore(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedLimiterStore>,
  options: LimiterContractOptions,
  suite: Suite,
): void {
  runner.describe(`limiter: ${name}`, () => {
    const store = new StoreUnderTest(runner, options);
    runner.beforeAll(async () => store.opened(await open()));
    runner.afterAll(() => store.close());
    suite(store);
  });
}
