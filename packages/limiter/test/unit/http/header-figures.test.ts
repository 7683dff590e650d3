/** The figures in response headers, at the edges of a bucket. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { type HeaderStyle, headersOf } from "@zae-limiter/limiter/http/headers.ts";
import { expect, test } from "vitest";

/** The headers of one bucket; balances in milli-tokens, as stores have them. */
function shown(style: HeaderStyle, requested: number, balances: Readonly<Record<string, number>>) {
  const statuses = Object.entries(balances).map(([text, milli]) => {
    const limit = Limit.parse(text);
    const check = { entityId: "key-1", resource: "http", limit, requested };
    return statusOf(check, milli, limit.rate);
  });
  const headers = headersOf([style], {
    statuses,
    entityId: statuses[0]?.entityId ?? "",
    nowMs: 1_800_000_000_001,
  });
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]));
}

test("a full bucket has no token to wait for, and any other one waits for its next", () => {
  const { ratelimit } = shown("draft", 0, { "rpm:60": 60_000, "tpm:10/min:20": 19_000 });
  expect(ratelimit).toBe('"rpm";r=60;t=0, "tpm";r=19;t=6');
});

test("a refused request waits until its amount fits, in whole seconds that are enough", () => {
  const { ratelimit } = shown("draft", 3, { "rpm:60": 500 });
  expect(ratelimit).toBe('"rpm";r=0;t=3');
});

test("a request that never fits has no time at all", () => {
  expect(shown("draft", 11, { "rpm:10": 10_000 }).ratelimit).toBe('"rpm";r=10');
});

test("only limits that count tokens have the unit", () => {
  const policy = shown("draft", 0, { "rpm:60": 0, "tpm:100": 0, "input_tokens:9": 0 });
  expect(policy["ratelimit-policy"]).toBe(
    '"rpm";q=60;w=60, "tpm";q=100;w=60;zae-unit="tokens", ' +
      '"input_tokens";q=9;w=60;zae-unit="tokens"',
  );
});

test("styles with one figure show the limit with the smallest share, not the smallest number", () => {
  const balances = { "rpm:10": 9000, "tpm:10000": 100_000 };
  expect(shown("draft-7", 0, balances).ratelimit).toBe("limit=10000, remaining=100, reset=60");
  expect(shown("draft-6", 0, balances)["ratelimit-remaining"]).toBe("100");
  expect(shown("legacy", 0, balances)).toEqual({
    "x-ratelimit-limit": "10000",
    "x-ratelimit-remaining": "100",
    "x-ratelimit-reset": "1800000061",
  });
});

test("the time until a bucket is full counts down between two tokens", () => {
  const half = { "rph:1/hour": 500 };
  expect(shown("draft-7", 0, half).ratelimit).toBe("limit=1, remaining=0, reset=1800");
  expect(shown("draft-6", 0, half)["ratelimit-reset"]).toBe("1800");
  expect(shown("legacy", 0, half)["x-ratelimit-reset"]).toBe("1800001801");
});

test.each([
  [999_900, "6ms"],
  [994_000, "360ms"],
  [900_000, "6s"],
  [0, "1m0s"],
  [-500_000, "1m30s"],
])("the style of OpenAI writes the time of %i milli-tokens of 1,000 as %s", (milli, text) => {
  expect(shown("openai", 0, { "rpm:1000": milli })).toEqual({
    "x-ratelimit-limit-requests": "1000",
    "x-ratelimit-remaining-requests": String(Math.max(0, Math.floor(milli / 1000))),
    "x-ratelimit-reset-requests": text,
  });
});

test("a time in the style of OpenAI is long enough: parts of a second count as one", () => {
  const headers = shown("openai", 0, { "rpm:60": 58_500 });
  expect(headers["x-ratelimit-reset-requests"]).toBe("2s");
});
