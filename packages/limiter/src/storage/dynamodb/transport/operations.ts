/** The requests this adapter sends, by the name DynamoDB gives them. */

import type { InputIn, OperationIn, OutputIn } from "./sdk-command.ts";
// Types only: the SDK itself is loaded when the first request is sent.
import type * as Data from "./sdk-data.ts";
import type * as Streams from "./sdk-streams.ts";

type Sdk = typeof Data & typeof Streams;

/** Every operation that the two modules have a command for. */
export type OperationName = OperationIn<Sdk>;
export type Input<Name extends OperationName> = InputIn<Sdk, Name>;
export type Output<Name extends OperationName> = OutputIn<Sdk, Name>;

/** All of the second module: one that is missing here does not compile. */
const OF_STREAMS = {
  DescribeStream: true,
  GetShardIterator: true,
  GetRecords: true,
} as const satisfies Record<OperationIn<typeof Streams>, true>;

/** Operations of the second service, the feed of changes. */
export const STREAM_OPERATIONS: ReadonlySet<string> = new Set(Object.keys(OF_STREAMS));

/** Operations that use up capacity, and which kind of it. */
export const CAPACITY_KIND: ReadonlyMap<OperationName, "read" | "write"> = new Map([
  ["GetItem", "read"],
  ["BatchGetItem", "read"],
  ["TransactGetItems", "read"],
  ["Query", "read"],
  ["Scan", "read"],
  ["PutItem", "write"],
  ["UpdateItem", "write"],
  ["DeleteItem", "write"],
  ["TransactWriteItems", "write"],
  ["BatchWriteItem", "write"],
]);

/** Requests for data, which must be fast. */
export const LEAN_OPERATIONS: ReadonlySet<OperationName> = new Set(CAPACITY_KIND.keys());
