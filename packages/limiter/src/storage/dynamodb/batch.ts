/** Batches: splits requests that are too large, and repeats items that were left unprocessed. */

import type { AttributeValue as SdkValue, WriteRequest } from "@aws-sdk/client-dynamodb";
import { chunksOf, inParallel } from "../../base/bounded.ts";
import { defined } from "../../base/defined.ts";
import type { Deadline } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import { checkDistinct, checkSnapshot, checkWrite } from "../checks.ts";
import { checkKey, type Item, type Key, keyOf } from "../item.ts";
import type { ReadManyOptions } from "../item-store.ts";
import type { Calls } from "./transport/calls.ts";

/** Limits of DynamoDB. */
const GET_MAX = 100;
const WRITE_MAX = 25;
/** Enough to hide the latency, and little enough to leave connections for others. */
const PARALLEL = 8;

type Found = Map<string, Item>;

/** Returns items in the order of their keys. */
export async function getMany(
  calls: Calls,
  keys: readonly Key[],
  options: ReadManyOptions,
): Promise<(Item | undefined)[]> {
  for (const key of keys) checkKey(key);
  // DynamoDB refuses a request that names a key twice.
  const unique = [...new Map(keys.map((key) => [nameOf(key), keyOf(key)])).values()];
  if (unique.length === 0) return [];
  const found: Found = new Map();
  if (options.snapshot === true) {
    await getSnapshot(calls, unique, options, found);
  } else {
    const deadline = await calls.start("BatchGetItem", options);
    await inParallel(chunksOf(unique, GET_MAX), PARALLEL, (chunk) =>
      getChunk(calls, chunk, { ...options, deadline }, found),
    );
  }
  return keys.map((key) => found.get(nameOf(key)));
}

/** Makes any number of puts and deletes, each key at most once. */
export async function writeMany(
  calls: Calls,
  puts: readonly Item[],
  deletes: readonly Key[],
): Promise<void> {
  // DynamoDB would refuse a bad write only after other pieces were written.
  for (const put of puts) checkWrite({ put });
  for (const key of deletes) checkWrite({ delete: key });
  checkDistinct([...puts, ...deletes]);
  const requests: WriteRequest[] = [
    ...puts.map((item) => ({ PutRequest: { Item: encodeItem(item) } })),
    ...deletes.map((key) => ({ DeleteRequest: { Key: encodeItem({ ...keyOf(key) }) } })),
  ];
  const progress = { made: false };
  try {
    await inParallel(chunksOf(requests, WRITE_MAX), PARALLEL, (chunk) =>
      writeChunk(calls, chunk, progress),
    );
  } catch (error) {
    throw progress.made ? somethingWritten(error) : error;
  }
}

async function getSnapshot(
  calls: Calls,
  keys: readonly Key[],
  options: ReadManyOptions,
  found: Found,
): Promise<void> {
  checkSnapshot(keys);
  const TransactItems = keys.map((key) => ({
    Get: { TableName: calls.table, Key: encodeItem({ ...key }) },
  }));
  const { Responses = [] } = await calls.read("TransactGetItems", { TransactItems }, options);
  keep(
    found,
    Responses.flatMap(({ Item }) => (Item === undefined ? [] : [Item])),
  );
}

async function getChunk(
  calls: Calls,
  chunk: readonly Key[],
  options: ReadManyOptions & { readonly deadline: Deadline },
  found: Found,
): Promise<void> {
  let left: Record<string, SdkValue>[] = chunk.map((key) => encodeItem({ ...key }));
  for (let attempt = 0; left.length > 0; attempt += 1) {
    if (attempt > 0) await calls.backOff(attempt - 1, options.deadline, "BatchGetItem");
    const ConsistentRead = options.consistent === true;
    const RequestItems = { [calls.table]: { Keys: left, ConsistentRead } };
    const answer = await calls.read("BatchGetItem", { RequestItems }, options);
    keep(found, Object.values(answer.Responses ?? {}).flat());
    left = Object.values(answer.UnprocessedKeys ?? {}).flatMap(({ Keys }) => Keys ?? []);
  }
}

/** Writes one piece. Each step has new time: a large job may take long while it makes progress. */
async function writeChunk(
  calls: Calls,
  chunk: readonly WriteRequest[],
  progress: { made: boolean },
): Promise<void> {
  let deadline = await calls.start("BatchWriteItem");
  let left = [...chunk];
  let attempt = 0;
  while (left.length > 0) {
    const RequestItems = { [calls.table]: left };
    const result = await calls.write("BatchWriteItem", { RequestItems }, { deadline });
    const undone = result.ok ? Object.values(result.output.UnprocessedItems ?? {}).flat() : left;
    if (undone.length < left.length) {
      progress.made = true;
      deadline = calls.deadline();
      attempt = 0;
    }
    left = undone;
    if (left.length > 0) await calls.backOff(attempt, deadline, "BatchWriteItem");
    attempt += 1;
  }
}

/** Returns the same failure, saying that other parts of the job were written. */
function somethingWritten(error: unknown): unknown {
  if (!(error instanceof RateLimiterUnavailable) || !error.nothingWritten) return error;
  return new RateLimiterUnavailable("DynamoDB stopped in the middle of a batch", {
    cause: error,
    nothingWritten: false,
    ...defined({ reason: error.reason, stackName: error.stackName }),
  });
}

function keep(found: Found, items: readonly Record<string, SdkValue>[]): void {
  for (const attributes of items) {
    const item = decodeItem(attributes);
    found.set(nameOf(item), item);
  }
}

function nameOf(key: Key): string {
  return JSON.stringify([key.PK, key.SK]);
}
