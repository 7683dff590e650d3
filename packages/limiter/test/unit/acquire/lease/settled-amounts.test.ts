/** What a lease of one bucket has to write after it was settled. */

import { settledDeltas } from "@zae-limiter/limiter/acquire/lease/settled-amounts.ts";
import { FastConsume } from "@zae-limiter/limiter/buckets/embedded/fast-consume.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const limits = [Limit.parse("rpm:10/min"), Limit.parse("tpm:1000/min")];
const config = { limits, source: "system", version: 1 } as const;
const link = { parentId: undefined, cascade: false };
/** One request and 500 tokens were consumed; 9 and 500 are left. */
const bucket = new FastConsume(true, "e", "r", config, link, [1000, 500_000, 9000, 500_000]);

test("the difference to what was consumed is written, of each limit that is named", () => {
  expect(settledDeltas(bucket, { tpm: 730 }, undefined)).toEqual([0, 230_000]);
  expect(settledDeltas(bucket, { rpm: 0, tpm: 1 }, undefined)).toEqual([-1000, -499_000]);
  expect(settledDeltas(bucket, {}, undefined)).toEqual([0, 0]);
});

test("a limit that is not named keeps what an earlier call has settled", () => {
  expect(settledDeltas(bucket, { rpm: 3 }, [0, 230_000])).toEqual([2000, 230_000]);
  expect(settledDeltas(bucket, { tpm: 500 }, [2000, 230_000])).toEqual([2000, 0]);
});

test.each([
  ["a limit that is not there", { rps: 1 }],
  ["an amount below zero", { tpm: -1 }],
  ["a part of a token", { tpm: 1.5 }],
  ["more than an amount may be", { tpm: 1e12 + 1 }],
  ["no number", { tpm: Number.NaN }],
  ["an amount that is missing", { tpm: null }],
  ["a list", [1, 2]],
  ["a map", new Map([["tpm", 1]])],
  ["nothing at all", undefined],
])("%s is left to the slow path", (_, amounts) => {
  expect(settledDeltas(bucket, amounts as never, undefined)).toBeUndefined();
});
