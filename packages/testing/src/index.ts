/**
 * For tests of code that uses the limiter: virtual time, and a simulated table that fails. And for
 * custom stores: the port, its contract, and the parts of a store in one process.
 */

export type { Prices } from "@zae-limiter/limiter/storage/dynamodb/prices.ts";
export type { Item, Key, Value } from "@zae-limiter/limiter/storage/item.ts";
export type {
  CallOptions,
  Change,
  ChangeRecord,
  ChangesOptions,
  Comparable,
  Condition,
  ItemStore,
  Query,
  ReadManyOptions,
  ReadOptions,
  Test,
  TransactOptions,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
export {
  type Cell,
  type CellWrite,
  type Commit,
  type CommitResult,
  ITEM_TABLE,
  type ItemTable,
  type LogPage,
  type LogStart,
  type PageRange,
  type TableCallOptions,
} from "@zae-limiter/limiter/storage/item-table.ts";
export { ChangeLog } from "@zae-limiter/limiter/storage/memory/feed.ts";
export {
  MemoryItemStore,
  type MemoryItemStoreOptions,
} from "@zae-limiter/limiter/storage/memory/item-store.ts";
export {
  type PlannedWrite,
  type PlannedWrites,
  planWrites,
} from "@zae-limiter/limiter/storage/plan-writes.ts";
export type { IndexName } from "@zae-limiter/limiter/storage/table.ts";
export { itemStoreContract } from "./item-store-contract/contract.ts";
export type { ContractOptions, OpenedStore } from "./item-store-contract/subject.ts";
export { limiterContract } from "./limiter-contract/contract.ts";
export type { LimiterContractOptions, OpenedLimiterStore } from "./limiter-contract/subject.ts";
export { seededRandom } from "./seeded-random.ts";
export { checkKeys, selectItems } from "./select-items.ts";
export type { Faults } from "./table/faults.ts";
export type { Throughput } from "./table/key-ranges.ts";
export type { Latency } from "./table/latency.ts";
export type {
  ProcessOpenOptions,
  ProcessOptions,
  SimulatedProcess,
} from "./table/simulated-process.ts";
export { SimulatedTable, type SimulatedTableOptions } from "./table/simulated-table.ts";
export type { Usage } from "./table/usage.ts";
export type { Matchers, TestRunner } from "./test-runner.ts";
export { VirtualTime } from "./time/virtual-time.ts";
