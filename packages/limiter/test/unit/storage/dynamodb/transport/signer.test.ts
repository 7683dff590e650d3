/** Signatures are those of `aws4`, which signs every request from the beginning. */

import { Signer } from "@zae-limiter/limiter/storage/dynamodb/transport/signer.ts";
import aws4 from "aws4";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const SEED = 20_251_115;
const START_MS = Date.UTC(2027, 0, 15, 23, 59, 58);

beforeEach(() => {
  vi.useFakeTimers({ now: START_MS, toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const identity = fc.record({
  region: fc.constantFrom("us-east-1", "eu-central-1"),
  credentials: fc.record(
    {
      accessKeyId: fc.stringMatching(/^[A-Z0-9]{4,20}$/),
      secretAccessKey: fc.stringMatching(/^[A-Za-z0-9/+]{1,90}$/),
      sessionToken: fc.stringMatching(/^[A-Za-z0-9/+=]{1,200}$/),
    },
    { requiredKeys: ["accessKeyId", "secretAccessKey"] },
  ),
  endpoint: fc.record({
    origin: fc.constant("http://127.0.0.1:8000"),
    host: fc.constantFrom("127.0.0.1:8000", "dynamodb.us-east-1.amazonaws.com"),
    path: fc.constantFrom("/", "/some/place"),
  }),
});

/** Requests one after the other, some of them in the next second, which may be the next day. */
const request = fc.record({
  operation: fc.constantFrom("UpdateItem", "GetItem", "TransactWriteItems"),
  body: fc.string({ unit: "binary" }).map((text) => Buffer.from(text)),
  afterMs: fc.constantFrom(0, 1, 999, 2500),
});

test("every signature is the one that aws4 would make", () => {
  fc.assert(
    fc.property(
      fc.array(identity, { minLength: 1, maxLength: 3 }),
      fc.array(request),
      (identities, all) => {
        vi.setSystemTime(START_MS);
        const signer = new Signer();
        all.forEach(({ operation, body, afterMs }, at) => {
          vi.setSystemTime(Date.now() + afterMs);
          const one = identities[at % identities.length] as (typeof identities)[number];
          const { headers, atMs } = signer.sign(operation, body, one);
          const named = pairs(headers);
          const { authorization, ...others } = named;
          expect(atMs).toBe(Date.now());
          const { path } = one.endpoint;
          const { region, credentials } = one;
          const signed = aws4.sign(
            // Lengths are not signed: the transport that sends the body writes its own.
            {
              method: "POST",
              path,
              service: "dynamodb",
              region,
              body,
              headers: others,
              ...UNCHANGED,
            },
            credentials,
          );
          expect(authorization).toBe(signed.headers?.Authorization);
          expect(others["x-amz-target"]).toBe(`DynamoDB_20120810.${operation}`);
          expect(others["X-Amz-Security-Token"]).toBe(credentials.sessionToken);
        });
      },
    ),
    { seed: SEED, numRuns: 200 },
  );
});

const UNCHANGED = { doNotModifyHeaders: true };

test("a signature that was far off is corrected by the server's time, and the next one has it", () => {
  const signer = new Signer();
  const identities = {
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "s" },
    endpoint: { origin: "http://h", host: "h", path: "/" },
  };
  const body = Buffer.from("{}");
  const { atMs } = signer.sign("GetItem", body, identities);
  expect(signer.correct(atMs, atMs + 60_000)).toBe(false);
  expect(pairs(signer.sign("GetItem", body, identities).headers)["x-amz-date"]).toBe(
    "20270115T235958Z",
  );
  expect(signer.correct(atMs, atMs + 3_600_000)).toBe(true);
  expect(pairs(signer.sign("GetItem", body, identities).headers)["x-amz-date"]).toBe(
    "20270116T005958Z",
  );
});

function pairs(headers: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2) {
    found[headers[at] as string] = headers[at + 1] as string;
  }
  return found;
}
