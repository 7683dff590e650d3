/** How a throttled key range is distinguished from a throttled table, account or index. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { CallOptions } from "@zae-limiter/limiter/storage/item-store.ts";
import { type FakeAnswer, fakeDynamo } from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { expect, it } from "vitest";

const KEY = { PK: "p", SK: "s" };
const HOT = "TableWriteKeyRangeThroughputExceeded";
const DONE: FakeAnswer = { body: {} };

function throttled(error: string, field: string, ...reasons: string[]): FakeAnswer {
  const resource = "arn:aws:dynamodb:us-east-1:123456789012:table/t";
  return { error, details: { [field]: reasons.map((reason) => ({ reason, resource })) } };
}

async function failureOf(answer: FakeAnswer, options: CallOptions = {}) {
  await using server = await fakeDynamo(answer);
  const store = new DynamoItemStore({
    table: "t",
    endpoint: server.endpoint,
    region: "us-east-1",
    maxAttempts: 2,
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
  });
  const error: unknown = await store.update(KEY, { add: { n: 1 } }, [], options).catch((e) => e);
  await store.close();
  if (!(error instanceof RateLimiterUnavailable)) throw error;
  return { error, requests: server.requests.length };
}

it.each([
  ["ThrottlingException", "throttlingReasons"],
  ["ProvisionedThroughputExceededException", "ThrottlingReasons"],
  ["RequestLimitExceeded", "ThrottlingReasons"],
])("%s names the key range in %s", async (name, field) => {
  for (const reason of [HOT, "TableReadKeyRangeThroughputExceeded"]) {
    const { error } = await failureOf(throttled(name, field, reason));
    expect(error).toMatchObject({ reason: "throttled", nothingWritten: true, keyRange: true });
  }
});

it.each([
  ["the table", ["TableWriteProvisionedThroughputExceeded"]],
  ["the ceiling of the table", ["TableWriteMaxOnDemandThroughputExceeded"]],
  ["the account", ["TableWriteAccountLimitExceeded"]],
  ["an index", ["IndexWriteKeyRangeThroughputExceeded"]],
  ["an index too", [HOT, "IndexWriteKeyRangeThroughputExceeded"]],
  ["nothing at all", []],
])("a hot key is not meant when DynamoDB names %s", async (_, reasons) => {
  const answer = throttled("ThrottlingException", "throttlingReasons", ...reasons);
  const { error, requests } = await failureOf(answer, { hotKey: "raise" });
  expect(error).toMatchObject({ reason: "throttled", nothingWritten: true, keyRange: false });
  expect(requests).toBe(2);
});

it("a throttled key is retried, or reported at once where the caller asks for that", async () => {
  const answer = throttled("ThrottlingException", "throttlingReasons", HOT);
  expect((await failureOf(answer)).requests).toBe(2);
  expect((await failureOf(answer, { hotKey: "raise" })).requests).toBe(1);
});

it("a hot key that cools down is written", async () => {
  await using server = await fakeDynamo(
    throttled("ThrottlingException", "throttlingReasons", HOT),
    DONE,
  );
  const store = new DynamoItemStore({ table: "t", endpoint: server.endpoint });
  expect(await store.put(KEY)).toMatchObject({ ok: true });
  await store.close();
});
