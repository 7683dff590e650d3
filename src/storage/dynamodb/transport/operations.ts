/** The requests this adapter sends, by the name DynamoDB gives them. */

// Types only: the SDK itself is loaded when the first request is sent.
import type * as Data from "@aws-sdk/client-dynamodb";
import type * as Streams from "@aws-sdk/client-dynamodb-streams";

/** Every operation with what it takes and what it answers. */
interface Operations {
  GetItem: [Data.GetItemCommandInput, Data.GetItemCommandOutput];
  BatchGetItem: [Data.BatchGetItemCommandInput, Data.BatchGetItemCommandOutput];
  TransactGetItems: [Data.TransactGetItemsCommandInput, Data.TransactGetItemsCommandOutput];
  Query: [Data.QueryCommandInput, Data.QueryCommandOutput];
  Scan: [Data.ScanCommandInput, Data.ScanCommandOutput];
  PutItem: [Data.PutItemCommandInput, Data.PutItemCommandOutput];
  UpdateItem: [Data.UpdateItemCommandInput, Data.UpdateItemCommandOutput];
  DeleteItem: [Data.DeleteItemCommandInput, Data.DeleteItemCommandOutput];
  TransactWriteItems: [Data.TransactWriteItemsCommandInput, Data.TransactWriteItemsCommandOutput];
  BatchWriteItem: [Data.BatchWriteItemCommandInput, Data.BatchWriteItemCommandOutput];
  CreateTable: [Data.CreateTableCommandInput, Data.CreateTableCommandOutput];
  DeleteTable: [Data.DeleteTableCommandInput, Data.DeleteTableCommandOutput];
  DescribeTable: [Data.DescribeTableCommandInput, Data.DescribeTableCommandOutput];
  DescribeTimeToLive: [Data.DescribeTimeToLiveCommandInput, Data.DescribeTimeToLiveCommandOutput];
  UpdateTimeToLive: [Data.UpdateTimeToLiveCommandInput, Data.UpdateTimeToLiveCommandOutput];
  DescribeStream: [Streams.DescribeStreamCommandInput, Streams.DescribeStreamCommandOutput];
  GetShardIterator: [Streams.GetShardIteratorCommandInput, Streams.GetShardIteratorCommandOutput];
  GetRecords: [Streams.GetRecordsCommandInput, Streams.GetRecordsCommandOutput];
}

export type OperationName = keyof Operations;
export type Input<Name extends OperationName> = Operations[Name][0];
export type Output<Name extends OperationName> = Operations[Name][1];

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
