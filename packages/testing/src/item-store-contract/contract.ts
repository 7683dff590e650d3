/**
 * The contract of an item store, as tests: whatever passes can carry the limiter. The suite knows
 * only the port. Every test has partitions of its own, so one table is enough for all of them.
 */

import type { TestRunner } from "../test-runner.ts";
import { batchesContract } from "./batches.ts";
import { changesContract } from "./changes.ts";
import { concurrencyContract } from "./concurrency.ts";
import { conditionsContract } from "./conditions.ts";
import { expiryContract } from "./expiry.ts";
import { feedContract } from "./feed.ts";
import { indexesContract } from "./indexes.ts";
import { namesContract } from "./names.ts";
import { pagingContract } from "./paging.ts";
import { queriesContract } from "./queries.ts";
import { readsContract } from "./reads.ts";
import { refusalsContract } from "./refusals.ts";
import { type ContractOptions, type OpenedStore, Subject } from "./subject.ts";
import { transactionsContract } from "./transactions.ts";
import { valuesContract } from "./values.ts";
import { writesContract } from "./writes.ts";

/**
 * Declares the tests that every item store must pass, with the functions of the test runner.
 *
 * @example
 * ```ts
 * import { itemStoreContract, MemoryItemStore, type TestRunner } from 'zae-limiter/testing';
 *
 * // Call it with `import * as vitest from 'vitest'`, or with the globals of Jest.
 * export function testMyStore(runner: TestRunner): void {
 *   itemStoreContract(runner, 'my store', async () => {
 *     let now = Date.now();
 *     const store = new MemoryItemStore({ clock: () => now });
 *     return { store, advance: (ms) => { now += ms; }, close: () => store.close() };
 *   });
 * }
 * ```
 */
export function itemStoreContract(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions = {},
): void {
  onStore(runner, name, open, options, (subject) => {
    const { describe } = runner;
    describe("reads", () => readsContract(subject));
    describe("writes", () => writesContract(subject));
    describe("conditions", () => conditionsContract(subject));
    describe("changes", () => changesContract(subject));
    describe("names", () => namesContract(subject));
    describe("values", () => valuesContract(subject));
    describe("refusals", () => refusalsContract(subject));
    describe("transactions", () => transactionsContract(subject));
    describe("batches", () => batchesContract(subject));
    describe("concurrency", () => concurrencyContract(subject));
    describe("feed", () => feedContract(subject));
    describe("expiry", () => expiryContract(subject));
    indexed(subject);
  });
}

/**
 * Declares the tests of the contract that depend on the indexes of the table.
 *
 * @internal Only tests use it.
 */
export function indexContract(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
): void {
  onStore(runner, name, open, options, indexed);
}

function indexed(subject: Subject): void {
  const { describe } = subject.cases;
  describe("queries", () => queriesContract(subject));
  describe("paging", () => pagingContract(subject));
  describe("indexes", () => indexesContract(subject));
}

function onStore(
  runner: TestRunner,
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
  suite: (subject: Subject) => void,
): void {
  runner.describe(`item store: ${name}`, () => {
    const subject = new Subject(runner, options);
    runner.beforeAll(async () => subject.opened(await open()));
    runner.afterAll(() => subject.close());
    suite(subject);
  });
}
