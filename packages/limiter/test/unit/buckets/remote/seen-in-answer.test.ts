import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { seenIn } from "@zae-limiter/limiter/buckets/remote/seen-in-answer.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

function legOf(...limits: string[]) {
  const config: BucketConfig = { limits: limits.map(Limit.parse), source: "system", version: 1 };
  const amountsMilli = limits.map(() => 0);
  return { entityId: "e", resource: "r", config, amountsMilli, link: UNLINKED, linkIsFresh: true };
}

test("balances come in the order of the limits of each leg, and not in that of their names", () => {
  const legs = [legOf("tpm:100", "rpm:10"), legOf("rpm:10", "tpm:100")];
  const balancesMilli = [
    [1, 2],
    [3, 4],
  ];
  const answer = { outcome: "granted", balancesMilli, configVersion: 1 } as const;
  expect(seenIn(legs, answer, 0)).toEqual({
    balancesMilli: [
      [2, 1],
      [3, 4],
    ],
    periods: undefined,
  });
});

test("a quota has its period, and a rate and a session that has not begun have none", () => {
  const legs = [legOf("tok:5/session:1hour", "req:10/day UTC", "rpm:10")];
  const periods = { endsMs: [[9000, 0, 0]], grantedMilli: [[10_000, 0, 5000]] };
  const balancesMilli = [[1, 2, 3]];
  const answer = { outcome: "refused", balancesMilli, ...periods, configVersion: 1 } as const;
  expect(seenIn(legs, answer, 7)).toEqual({
    balancesMilli: [[3, 1, 2]],
    periods: [[undefined, { endMs: 9000, grantedMilli: 10_000, atMs: 7 }, undefined]],
  });
});
