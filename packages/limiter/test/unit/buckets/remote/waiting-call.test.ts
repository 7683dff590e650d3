import { Deadline, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { type BucketConfig, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import {
  amountsAt,
  balancesWith,
  chainId,
  fitsInto,
  mayShare,
  safePrefix,
  WaitingCall,
} from "@zae-limiter/limiter/buckets/remote/waiting-call.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const LIMITS = [Limit.parse("tpm:600"), Limit.parse("rpm:60")];
const CONFIG: BucketConfig = { limits: LIMITS, source: "system", version: 1 };

function callOf(amountsMilli: readonly number[], config = CONFIG): WaitingCall {
  const leg = { entityId: "user", resource: "gpt-4", link: UNLINKED, linkIsFresh: false };
  const legs = [{ ...leg, config, amountsMilli }];
  const deadline = new Deadline(systemTimer, 1000);
  const ended = () => undefined;
  return new WaitingCall(legs, {}, undefined, deadline, ended, ended);
}

test("calls add up, in the order of the names of their limits", () => {
  const calls = [callOf([5, 1]), callOf([7, 1]), callOf([0, 0])];
  const sum = [2, 12];
  expect(amountsAt(calls, 0)).toEqual({
    gatesMilli: sum,
    takenMilli: sum,
    countedMilli: sum,
    acquires: 2,
  });
});

test("a soft limit is no gate, and under bypass amounts are only counted", () => {
  const rpm = LIMITS[1] as Limit;
  const soft = { ...CONFIG, limits: [Limit.perMinute("tpm", 600, { soft: true }), rpm] };
  expect(amountsAt([callOf([5, 1], soft)], 0)).toMatchObject({
    gatesMilli: [1, 0],
    takenMilli: [1, 5],
  });
  const bypass: BucketConfig = { ...CONFIG, bypass: true };
  expect(amountsAt([callOf([5, 1], bypass)], 0)).toMatchObject({
    gatesMilli: [0, 0],
    takenMilli: [0, 0],
    countedMilli: [1, 5],
  });
});

test("sums beyond the safe integers are split", () => {
  const large = callOf([Number.MAX_SAFE_INTEGER, 1]);
  expect(safePrefix([large, large, callOf([1, 1])])).toEqual([large]);
  expect(safePrefix([callOf([1, 1]), callOf([1, 1])])).toHaveLength(2);
  expect(safePrefix([])).toEqual([]);
});

test("calls with the same limits share a request, and others do not", () => {
  const same = callOf([1, 1], { ...CONFIG, version: 2 });
  expect(mayShare(callOf([1, 1]), same)).toBe(true);
  expect(mayShare(callOf([1, 1]), callOf([1, 1], { ...CONFIG, bypass: true }))).toBe(false);
  const others = callOf([1, 1], { ...CONFIG, limits: [...LIMITS] });
  expect(mayShare(callOf([1, 1]), others)).toBe(false);
});

test("a call that was sent is not known to be unwritten when its time is over", () => {
  const errors: unknown[] = [];
  for (const isSent of [false, true]) {
    const { legs, deadline } = callOf([1, 1]);
    const fail = (error: unknown) => errors.push(error);
    const call = new WaitingCall(legs, {}, undefined, deadline, () => undefined, fail);
    call.isSent = isSent;
    call.expire();
  }
  expect(errors).toMatchObject([{ nothingWritten: true }, { nothingWritten: false }]);
});

test("balances tell which calls fit, and what is left after them", () => {
  const call = callOf([5, 1]);
  expect(fitsInto(call, [[5, 1]])).toBe(true);
  expect(fitsInto(call, [[4, 1]])).toBe(false);
  expect(balancesWith(call, [[5, 1]], -1)).toEqual([[0, 0]]);
  expect(balancesWith(call, [[0, 0]], 1)).toEqual([[5, 1]]);
});

test("a chain is named by all its buckets", () => {
  const [leg] = callOf([1, 1]).legs as [WaitingCall["legs"][number]];
  const org = { ...leg, entityId: "org" };
  expect(chainId([leg])).not.toBe(chainId([leg, org]));
  expect(chainId([leg, org])).not.toBe(chainId([org, leg]));
});
