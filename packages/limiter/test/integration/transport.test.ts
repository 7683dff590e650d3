/** The transport of our own: what it sends, and that its answers mean what the SDK's mean. */

import { crc32 } from "node:zlib";
import {
  type RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  DynamoItemStore,
  type DynamoItemStoreOptions,
} from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import {
  type FakeAnswer,
  type FakeDynamo,
  fakeDynamo,
  reset,
} from "@zae-limiter/test-engines/fake-dynamodb.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { describe, expect, it } from "vitest";
import { checkSignature } from "./transport/signature.ts";

const KEY = { PK: "p", SK: "s" };
const TYPED = { PK: { S: "p" }, SK: { S: "s" } };
/** Nothing was found, or everything written; unknown fields are ignored. */
const DONE: FakeAnswer = { body: { Responses: {} } };
const OLD = { accessKeyId: "old", secretAccessKey: "old secret", sessionToken: "old token" };
const NEW = { accessKeyId: "new", secretAccessKey: "new secret", sessionToken: "new token" };
const MINUTE_MS = 60_000;

function storeAt(
  endpoint: string,
  options: Partial<DynamoItemStoreOptions> = {},
): DynamoItemStore & Disposable {
  const store = new DynamoItemStore({ table: "t", endpoint, timeoutMs: 20_000, ...options });
  return Object.assign(store, { [Symbol.dispose]: () => void store.close() });
}

describe("what is sent", () => {
  const CALLS: [string, (store: ItemStore) => Promise<unknown>][] = [
    ["GetItem", (store) => store.get(KEY)],
    ["PutItem", (store) => store.put({ ...KEY, text: "Grüße, 世界 \u{1f600}" })],
    ["UpdateItem", (store) => store.update(KEY, { set: { "ö#": '\u{1f600}\n"' }, add: { n: 1 } })],
    ["DeleteItem", (store) => store.delete(KEY)],
    ["TransactWriteItems", (store) => store.transact([{ put: KEY }], { token: "once" })],
    ["BatchGetItem", (store) => store.getMany([KEY])],
    ["BatchWriteItem", (store) => store.writeMany({ puts: [KEY] })],
  ];

  it.each(CALLS)("%s is signed, and says the same as the SDK would", async (operation, call) => {
    await using server = await fakeDynamo(DONE);
    for (const transport of ["lean", "sdk"] as const) {
      using store = storeAt(server.endpoint, { transport, credentials: NEW, region: "eu-west-1" });
      await call(store);
    }
    const [lean, sdk] = server.requests as [
      FakeDynamo["requests"][number],
      FakeDynamo["requests"][number],
    ];
    checkSignature(lean, NEW.secretAccessKey);
    expect(lean.headers.authorization).toContain("/eu-west-1/dynamodb/aws4_request");
    expect(lean.headers["x-amz-security-token"]).toBe(NEW.sessionToken);
    expect(lean.operation).toBe(operation);
    expect(lean.body).toStrictEqual(sdk.body);
    for (const name of ["host", "x-amz-target", "content-type"]) {
      expect(lean.headers[name]).toBe(sdk.headers[name]);
    }
  });

  it("an update of a known shape has its own key and values", async () => {
    await using server = await fakeDynamo(DONE);
    using lean = storeAt(server.endpoint);
    using sdk = storeAt(server.endpoint, { transport: "sdk" });
    for (const n of [1, -7, 10n ** 30n, 0.5, -0]) {
      for (const store of [lean, sdk]) {
        const key = { PK: `p${n}`, SK: "s" };
        await store.update(key, { add: { n }, set: { text: `"${n}"` } }, [
          { is: ">=", name: "n", value: n, orAbsent: true },
        ]);
      }
    }
    for (let at = 0; at < server.requests.length; at += 2) {
      expect(server.requests[at]?.body).toStrictEqual(server.requests[at + 1]?.body);
    }
  });

  it("requests are sent over connections that stay open", async () => {
    await using server = await fakeDynamo(DONE);
    using store = storeAt(server.endpoint);
    for (let calls = 0; calls < 20; calls += 1) await store.put(KEY);
    // A connection is free a moment after its answer, so calls in a row take turns on two.
    expect(server.connections).toBeLessThanOrEqual(2);
    for (let rounds = 0; rounds < 10; rounds += 1) {
      await Promise.all(Array.from({ length: 20 }, () => store.put(KEY)));
    }
    expect(server.connections).toBeLessThanOrEqual(40);
  });

  it("a request uses a new connection when the server has closed the old one", async () => {
    const closing: FakeAnswer = (response) => {
      const { socket } = response;
      response.end("{}", () => socket?.end());
    };
    await using server = await fakeDynamo(closing);
    using store = storeAt(server.endpoint);
    for (let calls = 0; calls < 5; calls += 1) {
      await store.put(KEY);
      while (server.open > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(server.requests).toHaveLength(5);
    expect(server.connections).toBe(5);
  });

  it("a request that finds no free connection in time is never sent, and closes none in use", async () => {
    const waiting: (() => void)[] = [];
    await using server = await fakeDynamo((response) => waiting.push(() => response.end("{}")));
    using store = storeAt(server.endpoint);
    const served = Array.from({ length: 128 }, () => store.put(KEY));
    while (waiting.length < 128) await new Promise((resolve) => setImmediate(resolve));
    const late = Array.from({ length: 40 }, () => failureOf(store.put(KEY, [], { timeoutMs: 20 })));
    const unsent = { reason: "timeout", nothingWritten: true };
    for (const error of await Promise.all(late)) expect(error).toMatchObject(unsent);
    for (const answer of waiting.splice(0)) answer();
    await Promise.all(served);
    const next = store.put(KEY);
    while (waiting.length < 1) await new Promise((resolve) => setImmediate(resolve));
    waiting.pop()?.();
    await next;
    expect([server.requests.length, server.connections, server.open]).toEqual([129, 128, 128]);
  });

  it("a request that timed out frees its connection for the next one", async () => {
    let hangs = true;
    await using server = await fakeDynamo((response) => hangs || response.end("{}"));
    using store = storeAt(server.endpoint);
    const calls = Array.from({ length: 128 }, () =>
      failureOf(store.put(KEY, [], { timeoutMs: 50 })),
    );
    for (const error of await Promise.all(calls))
      expect(error).toMatchObject({ reason: "timeout" });
    hangs = false;
    // On a busy machine the server reads some of the others only now: this one has its own key.
    const next = { PK: "next", SK: "#STATE" };
    await store.put(next);
    const sent = server.requests.filter(({ body }) => JSON.stringify(body).includes(next.PK));
    expect(sent).toHaveLength(1);
  });
});

describe("errors are those of the SDK", () => {
  const reasons = [
    { Code: "None" },
    { Code: "ConditionalCheckFailed", Message: "no", Item: { ...TYPED, n: { N: "7" } } },
  ];
  const raw =
    (status: number, text: string, headers: Record<string, string> = {}): FakeAnswer =>
    (response) => {
      response.writeHead(status, { "x-amzn-requestid": "r-1", ...headers });
      response.end(text);
    };
  const ERRORS: [string, FakeAnswer][] = [
    ["a condition", { error: "ConditionalCheckFailedException", details: { Item: TYPED } }],
    ["a condition without an item", { error: "ConditionalCheckFailedException" }],
    [
      "a cancelled transaction",
      { error: "TransactionCanceledException", details: { CancellationReasons: reasons } },
    ],
    ["a cancelled transaction without reasons", { error: "TransactionCanceledException" }],
    ["a missing table", { error: "ResourceNotFoundException" }],
    ["a bad request", { error: "ValidationException" }],
    ["a permission", { error: "AccessDeniedException" }],
    ["a wrong key", { error: "UnrecognizedClientException" }],
    ["a wrong signature", { error: "InvalidSignatureException" }],
    ["an old token", { error: "ExpiredTokenException" }],
    ["a full partition", { error: "ItemCollectionSizeLimitExceededException" }],
    ["throttling", { error: "ProvisionedThroughputExceededException" }],
    ["a conflict", { error: "TransactionConflictException" }],
    ["a server error", { error: "InternalServerError", status: 500 }],
    ["an unknown error", { error: "SomethingNewException" }],
    ["a name in a header", raw(400, "{}", { "x-amzn-errortype": "ThrottlingException:x" })],
    ["a name as a code", raw(400, '{"code":"ThrottlingException","Message":"slow down"}')],
    ["a bare name", raw(400, '{"__type":"ValidationException","message":"no"}')],
    ["a message in capitals", raw(400, '{"__type":"a#ValidationException","Message":"no"}')],
    ["no body", raw(400, "")],
    ["no body of a broken server", raw(503, "")],
    ["too many requests", raw(429, '{"__type":"Other"}')],
    ["a redirection", raw(307, "", { location: "http://127.0.0.1:1/" })],
    ["not JSON", raw(200, "<html>")],
    ["half of it", raw(200, '{"Attributes":{"PK":')],
    ["a reset", reset],
  ];
  const CALLS: [string, (store: ItemStore) => Promise<unknown>][] = [
    ["get", (store) => store.get(KEY)],
    ["update", (store) => store.update(KEY, { add: { n: 1 } })],
    ["transact", (store) => store.transact([{ put: KEY }], { token: "once" })],
  ];

  /** The outcome as far as a caller can observe it. */
  async function outcome(call: Promise<unknown>): Promise<unknown> {
    return call.then(
      (value) => ({ value }),
      (error: Error) => {
        const { name, message, cause } = error;
        const { reason, nothingWritten } = error as RateLimiterUnavailable;
        return { name, message, reason, nothingWritten, cause: tellable(cause) };
      },
    );
  }

  /** Fields of an error that came as an answer; failures of sockets differ between libraries. */
  function tellable(cause: unknown): unknown {
    const { name, message, $fault, $metadata, Item, CancellationReasons } = (cause ?? {}) as {
      [field: string]: unknown;
      $metadata?: { httpStatusCode: number; requestId?: string };
    };
    if ($fault === undefined) return undefined;
    const { httpStatusCode, requestId } = $metadata ?? {};
    return { name, message, $fault, httpStatusCode, requestId, Item, CancellationReasons };
  }

  describe.each(ERRORS)("%s", (_, answer) => {
    it.each(CALLS)("both transports report the same error for %s", async (_name, call) => {
      const outcomes = [];
      for (const transport of ["lean", "sdk"] as const) {
        await using server = await fakeDynamo(answer);
        using store = storeAt(server.endpoint, { transport, maxAttempts: 2, random: () => 0 });
        outcomes.push({
          ...((await outcome(call(store))) as object),
          sent: server.requests.length,
        });
      }
      expect(outcomes[0]).toStrictEqual(outcomes[1]);
    });
  });
});

describe("a damaged answer", () => {
  const text = JSON.stringify({ Item: { ...TYPED, n: { N: "1" } }, Attributes: TYPED });
  const summed =
    (sum: number): FakeAnswer =>
    (response) => {
      response.writeHead(200, { "x-amz-crc32": String(sum) });
      response.end(text);
    };

  it("a damaged answer is asked for again where nothing was written", async () => {
    await using server = await fakeDynamo(summed(1), summed(crc32(text)));
    using store = storeAt(server.endpoint);
    expect(await store.get(KEY)).toStrictEqual({ ...KEY, n: 1 });
    expect(server.requests).toHaveLength(2);
  });

  it("a damaged answer leaves a write unknown", async () => {
    await using server = await fakeDynamo(summed(1));
    using store = storeAt(server.endpoint);
    expect(await failureOf(store.update(KEY, { add: { n: 1 } }))).toMatchObject({
      reason: "network",
      nothingWritten: false,
      cause: { name: "BrokenAnswer" },
    });
    expect(server.requests).toHaveLength(1);
  });
});

describe("credentials", () => {
  /** Takes only what was signed with the new ones. */
  const strict: FakeAnswer = {
    to: (request) => {
      if (request.headers["x-amz-security-token"] !== NEW.sessionToken) {
        return { error: "ExpiredTokenException" };
      }
      checkSignature(request, NEW.secretAccessKey);
      return DONE;
    },
  };

  it("credentials that went stale are renewed, and the request is sent again", async () => {
    await using server = await fakeDynamo(strict);
    let asked = 0;
    const credentials = async () => {
      asked += 1;
      return { ...(asked === 1 ? OLD : NEW), expiration: new Date(Date.now() + 60 * MINUTE_MS) };
    };
    using store = storeAt(server.endpoint, { credentials });
    const many = Array.from({ length: 10 }, () => store.put(KEY));
    await Promise.all(many);
    await store.put(KEY);
    expect(server.requests.length).toBeLessThanOrEqual(21);
    expect(server.requests.at(-1)?.headers["x-amz-security-token"]).toBe(NEW.sessionToken);
  });

  it("credentials that stay stale are refused after one request", async () => {
    await using server = await fakeDynamo(strict);
    using store = storeAt(server.endpoint, { credentials: OLD });
    expect(await failureOf(store.put(KEY))).toMatchObject({
      code: "ZAEL_INFRASTRUCTURE",
      cause: { name: "ExpiredTokenException" },
    });
    expect(server.requests).toHaveLength(1);
  });

  it("credentials are asked for once, and again before they expire", async () => {
    await using server = await fakeDynamo(DONE);
    let asked = 0;
    let leftMs = 60 * MINUTE_MS;
    const credentials = async () => {
      asked += 1;
      return { ...NEW, expiration: new Date(Date.now() + leftMs) };
    };
    using store = storeAt(server.endpoint, { credentials });
    for (let calls = 0; calls < 5; calls += 1) await store.put(KEY);
    expect(asked).toBe(1);
    leftMs = 4 * MINUTE_MS;
    asked = 0;
    using other = storeAt(server.endpoint, { credentials });
    for (let calls = 0; calls < 5; calls += 1) await other.put(KEY);
    expect(asked).toBeGreaterThanOrEqual(5);
  });
});

describe("a machine whose clock is wrong", () => {
  it("a machine whose clock is wrong signs with the server's time once it knows it", async () => {
    const aheadMs = 30 * MINUTE_MS;
    const fussy: FakeAnswer = {
      to:
        ({ headers }) =>
        (response) => {
          const text = String(headers["x-amz-date"]);
          const signedMs = Date.parse(
            text.replace(/^(....)(..)(..T..)(..)(..)Z$/, "$1-$2-$3:$4:$5Z"),
          );
          const serverMs = Date.now() + aheadMs;
          const refused = Math.abs(serverMs - signedMs) > 5 * MINUTE_MS;
          const type = "com.amazon.coral.service#InvalidSignatureException";
          response.writeHead(refused ? 400 : 200, { date: new Date(serverMs).toUTCString() });
          response.end(JSON.stringify(refused ? { __type: type, message: "too old" } : {}));
        },
    };
    for (const transport of ["lean", "sdk"] as const) {
      await using server = await fakeDynamo(fussy);
      using store = storeAt(server.endpoint, { transport });
      await store.put(KEY);
      await store.put(KEY);
      expect(server.requests).toHaveLength(3);
    }
  });
});

describe("the choice", () => {
  it("the choice of a transport is checked", () => {
    const at = (options: object) => () => storeAt("http://127.0.0.1:1", options);
    expect(at({ transport: "fast" })).toThrow(ValidationError);
    expect(at({ transport: "lean", requestHandler: {} })).toThrow("needs the transport sdk");
  });

  it("the choice of a request handler is the choice of the SDK", async () => {
    const asked: unknown[] = [];
    const requestHandler = {
      handle: async (request: unknown) => {
        asked.push(request);
        return { response: { statusCode: 200, headers: {}, body: Buffer.from("{}") } };
      },
    };
    using store = storeAt("http://127.0.0.1:1", { requestHandler: requestHandler as never });
    expect(await store.get(KEY)).toBeUndefined();
    expect(asked).toHaveLength(1);
  });
});
