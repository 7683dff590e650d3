/** The DynamoDB adapter with a bad network, a busy server and a wrong setup. */

import { once } from "node:events";
import { inspect } from "node:util";
import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  DynamoItemStore,
  type DynamoItemStoreOptions,
} from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { ItemStore, StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import {
  closedEndpoint,
  drip,
  type FakeAnswer,
  fakeDynamo,
  hang,
  reset,
} from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { describe, expect, it } from "vitest";

/** For calls that will run into it. */
const IMPATIENT = { timeoutMs: 400 };
/** For calls that succeed in the end, on a busy machine too. */
const PATIENT = { timeoutMs: 20_000 };
/** A busy machine notices a deadline late, but a call without one would never end. */
const SLACK_MS = 1500;
const KEY = { PK: "p", SK: "s" };
const TWO_WRITES = [{ put: KEY }, { delete: { PK: "p", SK: "t" } }];
/** Nothing was found, or everything written; fields of other operations are ignored. */
const DONE: FakeAnswer = { body: { Responses: [], Items: [] } };

const READS: [string, (store: ItemStore) => Promise<unknown>][] = [
  ["get", (store) => store.get(KEY)],
  ["getMany", (store) => store.getMany([KEY])],
  ["snapshot", (store) => store.getMany([KEY], { snapshot: true })],
  ["query", (store) => first(store.query({ partition: "p" }))],
];
const WRITES: [string, (store: ItemStore) => Promise<unknown>][] = [
  ["put", (store) => store.put(KEY)],
  ["update", (store) => store.update(KEY, { add: { n: 1 } })],
  ["delete", (store) => store.delete(KEY)],
  ["transact", (store) => store.transact(TWO_WRITES)],
  ["writeMany", (store) => store.writeMany({ puts: [KEY] })],
];
async function first<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item;
  return undefined;
}

const withToken = (store: ItemStore) => store.transact([{ put: KEY }], { token: "once" });

const cancelled = (...codes: string[]): FakeAnswer => ({
  error: "TransactionCanceledException",
  details: { CancellationReasons: codes.map((Code) => ({ Code })) },
});

function storeAt(
  endpoint: string,
  options: Partial<DynamoItemStoreOptions> = {},
): DynamoItemStore & Disposable {
  const store = new DynamoItemStore({ table: "t", endpoint, ...PATIENT, ...options });
  return Object.assign(store, { [Symbol.dispose]: () => void store.close() });
}

/** How a call that must fail fails, and how long that takes. */
async function failure(call: Promise<unknown>): Promise<{ error: unknown; tookMs: number }> {
  const startedAt = performance.now();
  const error = await call.then(
    (value) => expect.fail(`it went well: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  return { error, tookMs: performance.now() - startedAt };
}

async function unavailable(call: Promise<unknown>): Promise<RateLimiterUnavailable> {
  const { error, tookMs } = await failure(call);
  expect(error).toBeInstanceOf(RateLimiterUnavailable);
  expect(tookMs).toBeLessThan(IMPATIENT.timeoutMs + SLACK_MS);
  return error as RateLimiterUnavailable;
}

describe("no answer in time", () => {
  it.each([...READS, ...WRITES])(
    "%s on a connection that is refused fails long before its time is over",
    async (_, call) => {
      for (const transport of ["lean", "sdk"] as const) {
        using store = storeAt(await closedEndpoint(), { ...PATIENT, transport });
        const { error, tookMs } = await failure(call(store));
        expect(error).toMatchObject({ reason: "network", nothingWritten: true, stackName: "t" });
        expect(tookMs).toBeLessThan(1000 + SLACK_MS);
      }
    },
  );

  it.each(WRITES)("%s on a server that hangs is sent once", async (_, call) => {
    await using server = await fakeDynamo(hang);
    using store = storeAt(server.endpoint, IMPATIENT);
    expect(await unavailable(call(store))).toMatchObject({
      reason: "timeout",
      nothingWritten: false,
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each([...READS, ...WRITES])(
    "%s ends in time on an answer that never ends",
    async (_, call) => {
      await using server = await fakeDynamo(drip);
      using store = storeAt(server.endpoint, IMPATIENT);
      expect(await unavailable(call(store))).toMatchObject({ reason: "timeout" });
    },
  );

  it.each(READS)("%s is asked again when the first answer is late", async (_, call) => {
    await using server = await fakeDynamo(hang, DONE);
    using store = storeAt(server.endpoint, { timeoutMs: 1000 });
    await call(store);
    expect(server.requests).toHaveLength(2);
  });

  it("the time of one call can differ from the store's", async () => {
    await using server = await fakeDynamo(hang);
    using store = storeAt(server.endpoint);
    await unavailable(store.get(KEY, { timeoutMs: 50 }));
    await unavailable(store.put(KEY, [], { timeoutMs: 50 }));
  });

  it("a call whose time was used up before says so", async () => {
    await using server = await fakeDynamo(hang);
    using store = storeAt(server.endpoint);
    const { message } = await unavailable(store.get(KEY, { timeoutMs: 1 }));
    expect(message).toContain("No time was left for GetItem");
  });

  it("credentials that never come write nothing", async () => {
    using store = storeAt("http://127.0.0.1:1", {
      ...IMPATIENT,
      credentials: () => new Promise(() => undefined),
    });
    expect(await unavailable(store.put(KEY))).toMatchObject({
      reason: "timeout",
      nothingWritten: true,
    });
  });
});

describe("answers that prove nothing", () => {
  const UNKNOWN: [string, FakeAnswer, string][] = [
    ["a reset", reset, "network"],
    ["a server error", { error: "InternalServerError", status: 500 }, "server"],
    ["an overloaded service", { error: "ServiceUnavailable", status: 503 }, "server"],
    ["nonsense", (response) => response.end("<html>"), "network"],
  ];

  describe.each(UNKNOWN)("%s", (_, answer, reason) => {
    it.each(WRITES)(
      "an answer that proves nothing is not followed by another %s",
      async (_name, call) => {
        await using server = await fakeDynamo(answer, DONE);
        using store = storeAt(server.endpoint);
        expect(await unavailable(call(store))).toMatchObject({ reason, nothingWritten: false });
        expect(server.requests).toHaveLength(1);
      },
    );

    it.each(READS)(
      "an answer that proves nothing is followed by another %s",
      async (_name, call) => {
        await using server = await fakeDynamo(answer, DONE);
        using store = storeAt(server.endpoint);
        await call(store);
        expect(server.requests).toHaveLength(2);
      },
    );

    it("an answer that proves nothing is followed by the same transaction with the same token", async () => {
      await using server = await fakeDynamo(answer, DONE);
      using store = storeAt(server.endpoint);
      expect(await withToken(store)).toStrictEqual({ ok: true });
      expect(server.requests.map(({ body }) => body.ClientRequestToken)).toStrictEqual([
        "once",
        "once",
      ]);
    });
  });

  it("a transaction that is under way is asked for again", async () => {
    await using server = await fakeDynamo({ error: "TransactionInProgressException" }, DONE);
    using store = storeAt(server.endpoint);
    expect(await withToken(store)).toStrictEqual({ ok: true });
  });

  it("an outcome that once was uncertain stays so", async () => {
    await using server = await fakeDynamo(reset, { error: "ThrottlingException" });
    using store = storeAt(server.endpoint, IMPATIENT);
    expect(await unavailable(withToken(store))).toMatchObject({
      reason: "throttled",
      nothingWritten: false,
    });
    expect(server.requests.length).toBeGreaterThan(1);
  });

  it("a condition that refuses a repeated transaction says nothing about the first one", async () => {
    for (const transport of ["lean", "sdk"] as const) {
      await using server = await fakeDynamo(reset, cancelled("ConditionalCheckFailed"));
      using store = storeAt(server.endpoint, { ...IMPATIENT, transport });
      expect(await unavailable(withToken(store))).toMatchObject({ nothingWritten: false });
      expect(server.requests).toHaveLength(2);
    }
  });
});

describe("answers that prove that nothing was written", () => {
  const PASSING = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TransactionConflictException",
  ];

  describe.each(PASSING)("%s", (error) => {
    it.each([...READS, ...WRITES])(
      "an error that passes is followed by another %s",
      async (_, call) => {
        await using server = await fakeDynamo({ error }, { error }, DONE);
        using store = storeAt(server.endpoint);
        await call(store);
        expect(server.requests).toHaveLength(3);
      },
    );

    it("an error that no repetition cures is recognised", async () => {
      await using server = await fakeDynamo({ error });
      using store = storeAt(server.endpoint, { ...IMPATIENT, random: () => 0.5 });
      const failed = await unavailable(store.update(KEY, { add: { n: 1 } }));
      expect(failed).toMatchObject({ reason: "throttled", nothingWritten: true });
      expect(failed.cause).toMatchObject({ name: error });
      expect(server.requests.length).toBeGreaterThan(2);
    });
  });

  it("a request is repeated as often as the store is allowed to", async () => {
    await using server = await fakeDynamo({ error: "ThrottlingException" });
    using store = storeAt(server.endpoint, { maxAttempts: 2 });
    await unavailable(store.put(KEY));
    expect(server.requests).toHaveLength(2);
  });

  it("a transaction cancelled by conflicts and throttling is repeated", async () => {
    const answer = cancelled("None", "TransactionConflict", "ThrottlingError");
    await using server = await fakeDynamo(answer, cancelled("ProvisionedThroughputExceeded"), DONE);
    using store = storeAt(server.endpoint);
    expect(await store.transact(TWO_WRITES)).toStrictEqual({ ok: true });
    expect(server.requests).toHaveLength(3);
  });

  it("a failed condition decides, whatever else went wrong", async () => {
    const reasons = [
      { Code: "TransactionConflict" },
      { Code: "ConditionalCheckFailed", Item: { PK: { S: "p" }, SK: { S: "s" }, n: { N: "7" } } },
      { Code: "ConditionalCheckFailed" },
      { Code: "None" },
    ];
    await using server = await fakeDynamo({
      error: "TransactionCanceledException",
      details: { CancellationReasons: reasons },
    });
    using store = storeAt(server.endpoint);
    expect(await store.transact(TWO_WRITES)).toStrictEqual({
      ok: false,
      failures: new Map([
        [1, { item: { PK: "p", SK: "s", n: 7 } }],
        [2, { item: undefined }],
      ]),
    });
    expect(server.requests).toHaveLength(1);
  });
});

describe("work that is left undone", () => {
  const keys = ["a", "b", "c"].map((SK) => ({ PK: "p", SK }));
  const typed = keys.map(({ PK, SK }) => ({ PK: { S: PK }, SK: { S: SK } }));
  const found = (...at: number[]) => ({ Responses: { t: at.map((index) => typed[index]) } });
  const unread = (...at: number[]) => ({
    UnprocessedKeys: { t: { Keys: at.map((index) => typed[index]) } },
  });
  const unwritten = (...at: number[]) => ({
    body: { UnprocessedItems: { t: at.map((index) => ({ PutRequest: { Item: typed[index] } })) } },
  });

  it("keys are asked for again, and the order is kept", async () => {
    await using server = await fakeDynamo(
      { body: { ...found(1), ...unread(2, 0) } },
      { body: { ...found(2), ...unread(0) } },
      { body: found(0) },
    );
    using store = storeAt(server.endpoint);
    expect(await store.getMany(keys)).toStrictEqual(keys);
    expect(server.requests.map(({ body }) => body.RequestItems?.t.Keys.length)).toStrictEqual([
      3, 2, 1,
    ]);
  });

  it("keys that never come are throttled", async () => {
    await using server = await fakeDynamo({ body: { Responses: {}, ...unread(0) } });
    using store = storeAt(server.endpoint, IMPATIENT);
    expect(await unavailable(store.getMany(keys))).toMatchObject({ reason: "throttled" });
  });

  it("work that is left undone writes are sent again", async () => {
    await using server = await fakeDynamo(unwritten(0, 1), unwritten(0, 1), unwritten(1), DONE);
    using store = storeAt(server.endpoint);
    await store.writeMany({ puts: keys });
    expect(server.requests.map(({ body }) => body.RequestItems?.t.length)).toStrictEqual([
      3, 2, 2, 1,
    ]);
  });

  it("work that is left undone writes that never get through say whether others did", async () => {
    await using none = await fakeDynamo(unwritten(0, 1, 2));
    using store = storeAt(none.endpoint, IMPATIENT);
    expect(await unavailable(store.writeMany({ puts: keys }))).toMatchObject({
      reason: "throttled",
      nothingWritten: true,
    });
    await using some = await fakeDynamo(unwritten(0));
    using other = storeAt(some.endpoint, IMPATIENT);
    expect(await unavailable(other.writeMany({ puts: keys }))).toMatchObject({
      reason: "throttled",
      nothingWritten: false,
    });
  });
});

describe("refusals", () => {
  const REFUSED: [string, FakeAnswer, abstract new (...args: never) => Error][] = [
    ["no permission", { error: "AccessDeniedException" }, InfrastructureError],
    ["unknown credentials", { error: "UnrecognizedClientException" }, InfrastructureError],
    ["old credentials", { error: "ExpiredTokenException" }, InfrastructureError],
    ["no table", { error: "ResourceNotFoundException" }, InfrastructureNotFoundError],
    ["a bad request", { error: "ValidationException" }, ValidationError],
    [
      "another table",
      {
        error: "ValidationException",
        details: { message: "The table does not have the specified index: GSI4" },
      },
      InfrastructureError,
    ],
    [
      "a full partition",
      { error: "ItemCollectionSizeLimitExceededException" },
      InfrastructureError,
    ],
  ];

  describe.each(REFUSED)("%s", (_, answer, kind) => {
    it.each([...READS, ...WRITES])(
      "a refusal of the server ends %s at once",
      async (_name, call) => {
        await using server = await fakeDynamo(answer);
        using store = storeAt(server.endpoint);
        const { error } = await failure(call(store));
        expect(error).toBeInstanceOf(kind);
        expect(error).not.toBeInstanceOf(RateLimiterUnavailable);
        expect((error as Error).cause).toMatchObject({
          name: "error" in answer ? answer.error : "",
        });
        expect(server.requests).toHaveLength(1);
      },
    );
  });

  it.each(["lean", "sdk"] as const)(
    "a server that repeats the request gets no credentials into errors (%s)",
    async (transport) => {
      const sessionToken = `IQoJb3JpZ2luX2VjEJr${"aB3+/".repeat(80)}`;
      const message = `You sent x-amz-security-token: ${sessionToken}, ${"and more ".repeat(1000)}`;
      await using server = await fakeDynamo({
        error: "AccessDeniedException",
        details: { message },
      });
      using store = storeAt(server.endpoint, {
        transport,
        credentials: { accessKeyId: "a", secretAccessKey: "b", sessionToken },
      });
      const { error } = await failure(store.get(KEY));
      expect((error as Error).message).toMatch(/may not call GetItem: You sent .*\[hidden\]/);
      expect((error as Error).message.length).toBeLessThan(500);
      expect(inspect(error)).not.toContain(sessionToken);
    },
  );

  it("credentials that cannot be found are an error that says so", async () => {
    const error = Object.assign(new Error("no profile"), { name: "CredentialsProviderError" });
    using store = storeAt("http://127.0.0.1:1", { credentials: () => Promise.reject(error) });
    const failed = await failure(store.get(KEY));
    expect(failed.error).toBeInstanceOf(InfrastructureError);
    expect(failed.error).toMatchObject({
      cause: error,
      code: "ZAEL_INFRASTRUCTURE",
      message: expect.stringMatching(/^No AWS credentials found: sign in .*\(no profile\)$/),
    });
  });

  it("an option that makes no sense is refused", () => {
    expect(() => storeAt("http://127.0.0.1:1", { timeoutMs: 0 })).toThrow(ValidationError);
    expect(() => storeAt("http://127.0.0.1:1", { maxAttempts: Number.NaN })).toThrow(
      ValidationError,
    );
  });

  it("a store that was closed refuses every call", async () => {
    using store = storeAt("http://127.0.0.1:1");
    await store.close();
    await expect(store.get(KEY)).rejects.toThrow("closed");
  });
});

describe("what is reported", () => {
  it("every request that was sent is reported, failed ones too", async () => {
    await using server = await fakeDynamo(
      { error: "ThrottlingException" },
      { body: { ConsumedCapacity: { TableName: "t", CapacityUnits: 3 } } },
    );
    const calls: StoreCall[] = [];
    using store = storeAt(server.endpoint, { onCall: (call) => calls.push(call) });
    await store.put(KEY);
    const nothing = { readUnits: 0, writeUnits: 0, indexUnits: 0 };
    const put = { operation: "PutItem", durationMs: expect.any(Number) };
    expect(calls).toStrictEqual([
      { ...put, ...nothing, estimated: true, outcome: "throttled", attempt: 1 },
      { ...put, ...nothing, writeUnits: 3, estimated: false, outcome: "ok", attempt: 2 },
    ]);
    expect(server.requests[0]?.body.ReturnConsumedCapacity).toBe("INDEXES");
  });

  it("without a listener no capacity is requested, and an unsent request is not reported", async () => {
    await using server = await fakeDynamo(DONE);
    using store = storeAt(server.endpoint);
    await store.put(KEY);
    expect(server.requests[0]?.body).not.toHaveProperty("ReturnConsumedCapacity");
    const calls: StoreCall[] = [];
    using nowhere = storeAt(await closedEndpoint(), {
      ...IMPATIENT,
      onCall: (call) => calls.push(call),
    });
    await unavailable(nowhere.put(KEY));
    expect(calls).toStrictEqual([]);
  });

  it("consumed capacity is requested while there is a listener", async () => {
    await using server = await fakeDynamo({
      body: { ConsumedCapacity: { TableName: "t", CapacityUnits: 2 } },
    });
    using store = storeAt(server.endpoint);
    const heard: [string, StoreCall][] = [];
    const touch = async () => {
      await store.update(KEY, { add: { n: 1 } });
      await store.get(KEY);
    };
    await touch();
    const ends = ["a", "b"].map((name) => store.listen((call) => heard.push([name, call])));
    await touch();
    for (const end of ends) {
      end();
      await touch();
    }
    expect(server.requests.map(({ body }) => body.ReturnConsumedCapacity)).toEqual(
      [undefined, "INDEXES", "INDEXES", undefined].flatMap((asked) => [asked, asked]),
    );
    expect(heard.map(([name, { operation }]) => `${name} ${operation}`)).toEqual([
      ...["a UpdateItem", "b UpdateItem", "a GetItem", "b GetItem"],
      ...["b UpdateItem", "b GetItem"],
    ]);
    expect(heard.map(([, { readUnits, writeUnits }]) => readUnits + writeUnits)).toEqual(
      heard.map(() => 2),
    );
  });

  it("a listener that joins during a request is told that its capacity is estimated", async () => {
    await using server = await fakeDynamo({ body: {} });
    using store = storeAt(server.endpoint);
    const calls: StoreCall[] = [];
    const written = store.update(KEY, { add: { n: 1 } });
    store.listen((call) => calls.push(call));
    await written;
    expect(calls).toEqual([expect.objectContaining({ writeUnits: 0, estimated: true })]);
  });

  it("a call is answered whatever the listener does", async () => {
    await using server = await fakeDynamo(DONE);
    const onCall = () => {
      throw new Error("of the listener");
    };
    using store = storeAt(server.endpoint, { onCall });
    const warned = once(process, "warning");
    await store.put(KEY);
    expect((await warned)[0]).toMatchObject({ code: "ZAEL_LISTENER_FAILED" });
  });

  it("a call reports the server's time", async () => {
    await using server = await fakeDynamo(DONE);
    using store = storeAt(server.endpoint, { clock: () => Date.now() + 3_600_000 });
    expect(store.serverDateSkewMs).toBeUndefined();
    await store.get(KEY);
    expect(store.serverDateSkewMs).toBeGreaterThan(-3_605_000);
    expect(store.serverDateSkewMs).toBeLessThan(-3_595_000);
  });
});
