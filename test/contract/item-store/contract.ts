/**
 * The contract of an item store, as tests: whatever passes can carry the limiter. The suite knows
 * only the port. Every test has partitions of its own, so one table is enough for all of them.
 */

import { afterAll, beforeAll, describe } from "vitest";
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

/** Runs the contract on the store that `open` opens. */
export function itemStoreContract(
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
): void {
  onStore(name, open, options, (subject) => {
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

/** The part of the contract that depends on the indexes of the table. */
export function indexContract(
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
): void {
  onStore(name, open, options, indexed);
}

function indexed(subject: Subject): void {
  describe("queries", () => queriesContract(subject));
  describe("paging", () => pagingContract(subject));
  describe("indexes", () => indexesContract(subject));
}

function onStore(
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
  suite: (subject: Subject) => void,
): void {
  describe(`item store: ${name}`, () => {
    const subject = new Subject(options);
    beforeAll(async () => subject.opened(await open()));
    afterAll(() => subject.close());
    suite(subject);
  });
}
