/** The contract of an item store, run by the test runner of this repository. */

import * as contract from "@zae-limiter/testing/item-store-contract/contract.ts";
import type {
  ContractOptions,
  OpenedStore,
} from "@zae-limiter/testing/item-store-contract/subject.ts";
import * as vitest from "vitest";

/** Runs the contract on the store that `open` opens. */
export function itemStoreContract(
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
): void {
  contract.itemStoreContract(vitest, name, open, options);
}

/** The part of the contract that depends on the indexes of the table. */
export function indexContract(
  name: string,
  open: () => Promise<OpenedStore>,
  options: ContractOptions,
): void {
  contract.indexContract(vitest, name, open, options);
}
