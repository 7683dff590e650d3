import { expect, test } from "vitest";
import { newToken } from "../../../../src/buckets/distributed/tokens.ts";
import { seededRandom } from "../../../../src/testing/seeded-random.ts";

test("a token is text that DynamoDB accepts, and differs from the one before", () => {
  const random = seededRandom(1);
  const tokens = new Set(Array.from({ length: 100 }, () => newToken(random)));
  expect(tokens.size).toBe(100);
  for (const token of tokens) expect(token).toMatch(/^[\w-]{32}$/);
});
