/** A stream whose shards close, split and disappear when a test says so. */

import { type FakeDynamo, type FakeRequest, fakeDynamo } from "./fake-dynamodb.ts";

const ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/1";
/** Few records per answer, so that a test sees more than one. */
const PAGE = 2;

export interface FakeShard {
  readonly id: string;
  readonly parent?: string;
  readonly records: object[];
  closed?: boolean;
}

export interface FakeStream extends FakeDynamo {
  readonly shards: FakeShard[];
  /** Names of errors that the next requests of an operation fail with. */
  readonly failures: Map<string, string[]>;
}

/** A table with a stream of these shards. */
export async function fakeStream(...shards: FakeShard[]): Promise<FakeStream> {
  const failures = new Map<string, string[]>();
  const server = await fakeDynamo({
    to: (request) => {
      const error = failures.get(request.operation)?.shift();
      return error === undefined ? { body: answer(shards, request) } : { error };
    },
  });
  return Object.assign(server, { shards, failures });
}

/** A change of the item with this sort key; sequence numbers are as long as the real ones. */
export function fakeRecord(sequence: number, details: object = {}): object {
  const Keys = { PK: { S: "p" }, SK: { S: `s${sequence}` } };
  return {
    eventName: "INSERT",
    dynamodb: {
      ApproximateCreationDateTime: Math.floor(Date.now() / 1000),
      Keys,
      NewImage: { ...Keys, n: { N: String(sequence) } },
      SequenceNumber: sequenceOf(sequence),
    },
    ...details,
  };
}

function answer(shards: readonly FakeShard[], { operation, body }: FakeRequest): object {
  switch (operation) {
    case "DescribeTable":
      return { Table: { LatestStreamArn: ARN } };
    case "DescribeStream":
      return { StreamDescription: describe(shards, body.ExclusiveStartShardId) };
    case "GetShardIterator":
      return { ShardIterator: openIterator(shards, body) };
    default:
      return readRecords(shards, body.ShardIterator ?? "");
  }
}

/** One shard per answer. */
function describe(shards: readonly FakeShard[], after: string | undefined): object {
  const at = shards.findIndex(({ id }) => id === after) + 1;
  const shard = shards[at];
  if (shard === undefined) return { Shards: [] };
  const last = at + 1 < shards.length ? { LastEvaluatedShardId: shard.id } : {};
  return { Shards: [{ ShardId: shard.id, ParentShardId: shard.parent }], ...last };
}

function openIterator(shards: readonly FakeShard[], request: FakeRequest["body"]): string {
  const records = shards.find(({ id }) => id === request.ShardId)?.records ?? [];
  const sequences = records.map((record) => JSON.stringify(record));
  const after = sequences.findIndex((text) => text.includes(`"${request.SequenceNumber}"`)) + 1;
  return `${request.ShardId}:${request.ShardIteratorType === "LATEST" ? records.length : after}`;
}

function readRecords(shards: readonly FakeShard[], iterator: string): object {
  const [shardId = "", start = "0"] = iterator.split(":");
  const shard = shards.find(({ id }) => id === shardId);
  const end = Math.min(Number(start) + PAGE, shard?.records.length ?? 0);
  const over = shard?.closed === true && end === shard.records.length;
  return {
    Records: shard?.records.slice(Number(start), end),
    ...(over ? {} : { NextShardIterator: `${shardId}:${end}` }),
  };
}

function sequenceOf(sequence: number): string {
  return String(sequence).padStart(21, "0");
}
