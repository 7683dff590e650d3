/** The requests this adapter sends, by the name DynamoDB gives them. */

// Types only: the SDK itself is loaded when the first request is sent.
import type * as Data from "@aws-sdk/client-dynamodb";
import type * as Streams from "@aws-sdk/client-dynamodb-streams";

interface Operation<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}

/** Every operation with what it takes and what it answers. */
interface Operations {
  GetItem: Operation<Data.GetItemCommandInput, Data.GetItemCommandOutput>;
  BatchGetItem: Operation<Data.BatchGetItemCommandInput, Data.BatchGetItemCommandOutput>;
  TransactGetItems: Operation<
    Data.TransactGetItemsCommandInput,
    Data.TransactGetItemsCommandOutput
  >;
  Query: Operation<Data.QueryCommandInput, Data.QueryCommandOutput>;
  Scan: Operation<Data.ScanCommandInput, Data.ScanCommandOutput>;
  PutItem: Operation<Data.PutItemCommandInput, Data.PutItemCommandOutput>;
  UpdateItem: Operation<Data.UpdateItemCommandInput, Data.UpdateItemCommandOutput>;
  DeleteItem: Operation<Data.DeleteItemCommandInput, Data.DeleteItemCommandOutput>;
  TransactWriteItems: Operation<
    Data.TransactWriteItemsCommandInput,
    Data.TransactWriteItemsCommandOutput
  >;
  BatchWriteItem: Operation<Data.BatchWriteItemCommandInput, Data.BatchWriteItemCommandOutput>;
  CreateTable: Operation<Data.CreateTableCommandInput, Data.CreateTableCommandOutput>;
  DeleteTable: Operation<Data.DeleteTableCommandInput, Data.DeleteTableCommandOutput>;
  DescribeTable: Operation<Data.DescribeTableCommandInput, Data.DescribeTableCommandOutput>;
  DescribeTimeToLive: Operation<
    Data.DescribeTimeToLiveCommandInput,
    Data.DescribeTimeToLiveCommandOutput
  >;
  UpdateTimeToLive: Operation<
    Data.UpdateTimeToLiveCommandInput,
    Data.UpdateTimeToLiveCommandOutput
  >;
  DescribeStream: Operation<
    Streams.DescribeStreamCommandInput,
    Streams.DescribeStreamCommandOutput
  >;
  GetShardIterator: Operation<
    Streams.GetShardIteratorCommandInput,
    Streams.GetShardIteratorCommandOutput
  >;
  GetRecords: Operation<Streams.GetRecordsCommandInput, Streams.GetRecordsCommandOutput>;
}

export type OperationName = keyof Operations;
export type Input<Name extends OperationName> = Operations[Name]["input"];
export type Output<Name extends OperationName> = Operations[Name]["output"];

const STREAM_OPERATION_NAMES = ["DescribeStream", "GetShardIterator", "GetRecords"] as const;
export type StreamOperationName = (typeof STREAM_OPERATION_NAMES)[number];

/** Operations of the second service, the feed of changes. */
export const STREAM_OPERATIONS: ReadonlySet<OperationName> = new Set(STREAM_OPERATION_NAMES);

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

/** Requests for data: those whose way must be short. */
export const LEAN_OPERATIONS: ReadonlySet<OperationName> = new Set(CAPACITY_KIND.keys());
