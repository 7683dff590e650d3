/** The feed on streams whose shards close and split, which the engines never show. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { ChangeRecord, ChangesOptions } from "@zae-limiter/limiter/storage/item-store.ts";
import {
  type FakeShard,
  type FakeStream,
  fakeRecord,
  fakeStream,
} from "@zae-limiter/test-engines/fake-stream.ts";
import { expect, it } from "vitest";

/** Reads until `count` changes came; more are not waited for. */
async function read(
  stream: FakeStream,
  from: NonNullable<ChangesOptions["from"]>,
  count: number,
  seen: (record: ChangeRecord) => void = () => undefined,
): Promise<ChangeRecord[]> {
  const store = new DynamoItemStore({ table: "t", endpoint: stream.endpoint, timeoutMs: 20_000 });
  const records: ChangeRecord[] = [];
  try {
    if (count === 0) return records;
    for await (const record of store.changes({ from })) {
      records.push(record);
      seen(record);
      if (records.length === count) break;
    }
    return records;
  } finally {
    await store.close();
  }
}

function numbers(records: readonly ChangeRecord[]): unknown[] {
  return records.map(({ after }) => after?.n);
}

function shard(id: string, parent: string | undefined, ...sequences: number[]): FakeShard {
  const records = sequences.map((sequence) => fakeRecord(sequence));
  return parent === undefined ? { id, records } : { id, parent, records };
}

/** Two lines of shards; the first was split in two, and one of those has a successor. */
function family(): FakeShard[] {
  return [
    { ...shard("c", "b1", 7, 8), closed: false },
    { ...shard("a", undefined, 1, 2, 3), closed: true },
    { ...shard("b1", "a", 4, 5), closed: true },
    shard("b2", "a", 6),
    shard("z", "gone", 9, 10, 11),
  ];
}
const FAMILY_SIZE = 11;

it("a shard comes after its parent", async () => {
  await using stream = await fakeStream(...family());
  const records = await read(stream, "oldest", FAMILY_SIZE);
  const seen = records.map(({ shard: id }) => id);
  expect(numbers(records).toSorted()).toStrictEqual([1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(seen.lastIndexOf("a")).toBeLessThan(seen.indexOf("b1"));
  expect(seen.lastIndexOf("a")).toBeLessThan(seen.indexOf("b2"));
  expect(seen.lastIndexOf("b1")).toBeLessThan(seen.indexOf("c"));
});

it("the rest of the feed comes once from every position", async () => {
  await using stream = await fakeStream(...family());
  const all = await read(stream, "oldest", FAMILY_SIZE);
  for (const [index, { position }] of all.entries()) {
    const rest = await read(stream, { after: position }, FAMILY_SIZE - index - 1);
    expect(numbers(rest).toSorted()).toStrictEqual(numbers(all.slice(index + 1)).toSorted());
  }
});

it("a feed from now on has only what comes, through a split", async () => {
  const parent = shard("a", undefined, 1, 2);
  await using stream = await fakeStream({ ...shard("old", undefined, 0), closed: true }, parent);
  const old = shard("a-first", "old", 100);
  stream.shards.push(old);
  // The feed has started when it asks for records.
  const started = new Promise<void>((resolve) => {
    const poll = setInterval(() => {
      if (!stream.requests.some(({ operation }) => operation === "GetRecords")) return;
      clearInterval(poll);
      resolve();
    }, 5);
  });
  const reading = read(stream, "now", 3);
  await started;
  parent.records.push(fakeRecord(3));
  parent.closed = true;
  stream.shards.push(shard("b", "a", 4), shard("c", "a", 5));
  expect(numbers(await reading).toSorted()).toStrictEqual([3, 4, 5]);
});

it("an iterator that has expired is renewed where it was", async () => {
  await using stream = await fakeStream(shard("a", undefined, 1, 2, 3, 4, 5));
  const records = await read(stream, "oldest", 5, ({ after }) => {
    if (after?.n === 2) stream.failures.set("GetRecords", ["ExpiredIteratorException"]);
  });
  expect(numbers(records)).toStrictEqual([1, 2, 3, 4, 5]);
});

it("a busy stream is asked again", async () => {
  await using stream = await fakeStream(shard("a", undefined, 1));
  stream.failures.set("DescribeStream", ["LimitExceededException"]);
  stream.failures.set("GetRecords", ["ProvisionedThroughputExceededException"]);
  expect(numbers(await read(stream, "oldest", 1))).toStrictEqual([1]);
});

it("the oldest record may move while it is looked for", async () => {
  await using stream = await fakeStream(shard("a", undefined, 1));
  stream.failures.set("GetRecords", ["TrimmedDataAccessException"]);
  expect(numbers(await read(stream, "oldest", 1))).toStrictEqual([1]);
});

it("a position that is not kept any more is refused", async () => {
  await using stream = await fakeStream(shard("a", undefined, 1, 2));
  const [first] = await read(stream, "oldest", 1);
  stream.failures.set("GetShardIterator", ["TrimmedDataAccessException"]);
  const rest = read(stream, { after: first?.position ?? "" }, 1);
  await expect(rest).rejects.toThrow(ValidationError);
});

it("a shard that is gone makes way for its children", async () => {
  await using stream = await fakeStream(
    { ...shard("a", undefined, 1), closed: true },
    shard("b", "a", 2),
  );
  const [first] = await read(stream, "oldest", 1);
  stream.shards.shift();
  expect(numbers(await read(stream, { after: first?.position ?? "" }, 1))).toStrictEqual([2]);
  stream.shards.unshift({ ...shard("a", undefined, 1), closed: true });
  stream.failures.set("GetShardIterator", ["ResourceNotFoundException"]);
  expect(numbers(await read(stream, "oldest", 1))).toStrictEqual([2]);
});

it("a change says whether the item's time was over", async () => {
  const expiry = { Type: "Service", PrincipalId: "dynamodb.amazonaws.com" };
  const records = [
    fakeRecord(1, { userIdentity: expiry }),
    fakeRecord(2),
    fakeRecord(3, { userIdentity: { Type: "AWSService", PrincipalId: "other" } }),
  ];
  await using stream = await fakeStream({ id: "a", records });
  const changes = await read(stream, "oldest", 3);
  expect(changes.map(({ expired }) => expired)).toStrictEqual([true, false, false]);
});
