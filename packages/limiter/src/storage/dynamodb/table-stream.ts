/** The stream of a table, shard by shard: for readers that share the shards among themselves. */

import type {
  _Record,
  Shard,
  AttributeValue as StreamValue,
} from "@aws-sdk/client-dynamodb-streams";
import { InfrastructureError } from "../../domain/errors/errors.ts";
import { decodeItem } from "../attribute-value.ts";
import { type Item, keyOf } from "../item.ts";
import type { ChangeRecord } from "../item-store.ts";
import { ShardReader } from "./shard-reader.ts";
import type { Calls } from "./transport/calls.ts";

/** The principal of deletions by time to live. */
const EXPIRY_PRINCIPAL = "dynamodb.amazonaws.com";

/** A shard, and the one it follows. */
interface StreamShard {
  readonly id: string;
  readonly parentId: string | undefined;
}

/** Some changes of a shard. */
interface ShardPage {
  readonly changes: readonly ChangeRecord[];
  /** The shard is closed and read to its end. */
  readonly ended: boolean;
}

export class TableStream {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Returns the address of the stream, and its shards of the last day. */
  async describe(): Promise<{ readonly arn: string; readonly shards: readonly StreamShard[] }> {
    const arn = await findStream(this.#calls);
    const shards = await listShards(this.#calls, arn);
    const described = [...shards].map(([id, { ParentShardId: parentId }]) => ({ id, parentId }));
    return { arn, shards: described };
  }

  /** Reads a shard after a sequence number, or from the oldest change that is kept. */
  read(arn: string, shardId: string, after: string | undefined): () => Promise<ShardPage> {
    const mark =
      after === undefined ? ({ from: "horizon" } as const) : ({ from: "sequence", after } as const);
    const reader = new ShardReader(this.#calls, arn, shardId, mark);
    return async () => {
      const { records, ended } = await reader.next();
      const changes = records.map((record) => {
        const sequence = record.dynamodb?.SequenceNumber ?? "";
        reader.advance(sequence);
        return changeOf(record, shardId, sequence, sequence);
      });
      return { changes, ended };
    };
  }
}

export async function findStream(calls: Calls): Promise<string> {
  const { table } = calls;
  const { Table } = await calls.read("DescribeTable", { TableName: table });
  if (Table?.LatestStreamArn !== undefined) return Table.LatestStreamArn;
  throw new InfrastructureError(`The table "${table}" has no stream to read changes from`);
}

export async function listShards(calls: Calls, arn: string): Promise<ReadonlyMap<string, Shard>> {
  const shards = new Map<string, Shard>();
  let last: string | undefined;
  do {
    const input = { StreamArn: arn, ExclusiveStartShardId: last };
    const { StreamDescription } = await calls.read("DescribeStream", input);
    for (const shard of StreamDescription?.Shards ?? []) shards.set(shard.ShardId ?? "", shard);
    last = StreamDescription?.LastEvaluatedShardId;
  } while (last !== undefined);
  return shards;
}

export function changeOf(
  record: _Record,
  shard: string,
  sequence: string,
  position: string,
): ChangeRecord {
  const { Keys = {}, OldImage, NewImage, ApproximateCreationDateTime } = record.dynamodb ?? {};
  return {
    key: keyOf(decodeItem(Keys)),
    before: decodeImage(OldImage),
    after: decodeImage(NewImage),
    atMs: ApproximateCreationDateTime?.getTime() ?? 0,
    expired: record.userIdentity?.PrincipalId === EXPIRY_PRINCIPAL,
    shard,
    sequence,
    position,
  };
}

type Attributes = Record<string, StreamValue>;

/** Decodes an image, which is absent before an item was created and after it was deleted. */
function decodeImage(image: Attributes | undefined): Item | undefined {
  return image === undefined ? undefined : decodeItem(withMaps(image));
}

function withMaps(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, withMap(value)]),
  );
}

/** Adds the type that DynamoDB Local leaves out of an empty map, and of nothing else. */
function withMap(value: StreamValue): StreamValue {
  if (value.M !== undefined) return { M: withMaps(value.M) };
  if (value.L !== undefined) return { L: value.L.map(withMap) };
  return Object.values(value).some((content) => content !== undefined) ? value : { M: {} };
}
