import { type Leg, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { KnownRefusals } from "@zae-limiter/limiter/buckets/remote/known-refusals.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect, test } from "vitest";

const CONFIG = { limits: [Limit.parse("rpm:60")], source: "system", version: 1 } as const;

function legOf(amount: number, entityId = "user"): Leg {
  const place = { entityId, resource: "gpt-4", link: UNLINKED, linkIsFresh: false };
  return { ...place, config: CONFIG, amountsMilli: [amount * 1000] };
}

test("what a bucket cannot have by now is refused, with the balances it can have at most", () => {
  let now = 1000;
  const refusals = new KnownRefusals(() => now);
  refusals.see([legOf(2)], { balancesMilli: [[500]] });
  expect(refusals.refusal([legOf(0)])).toBeUndefined();
  expect(refusals.refusal([legOf(2)])).toMatchObject({ outcome: "refused", local: true });
  now += 499;
  expect(refusals.refusal([legOf(1)])).toMatchObject({ balancesMilli: [[999]], shownAtMs: 1000 });
  now += 1;
  expect(refusals.refusal([legOf(1)])).toBeUndefined();
  expect(refusals.refusal([legOf(2)])).toBeDefined();
  now += 500;
  expect(refusals.refusal([legOf(2)])).toBeUndefined();
});

test("a clock that was set back, other limits, and an unknown ancestor leave it to the server", () => {
  let now = 1000;
  const refusals = new KnownRefusals(() => now);
  refusals.see([legOf(2)], { balancesMilli: [[0]] });
  expect(refusals.refusal([legOf(2), legOf(2, "org")])).toBeUndefined();
  const other = { ...legOf(2), config: { ...CONFIG, limits: [Limit.parse("rpm:60")] } };
  expect(refusals.refusal([other])).toBeUndefined();
  now -= 1;
  expect(refusals.refusal([legOf(2)])).toBeUndefined();
});

test("a bucket that was refunded is forgotten", () => {
  const refusals = new KnownRefusals(() => 1000);
  refusals.see([legOf(2), legOf(2, "org")], { balancesMilli: [[0], [0]] });
  refusals.forget(legOf(2, "org"));
  expect(refusals.refusal([legOf(2), legOf(2, "org")])).toBeUndefined();
  expect(refusals.refusal([legOf(2)])).toBeDefined();
  refusals.forgetAll();
  expect(refusals.refusal([legOf(2)])).toBeUndefined();
});

const SPENT = {
  ...CONFIG,
  limits: [Limit.parse("req:10/day UTC"), Limit.parse("rpm:60")],
} as const;
const END_MS = Date.parse("2026-11-19T00:00Z");

/** A leg that asks for some of a quota, and of a rate next to it. */
function spendingLeg(req: number, rpm = 0): Leg {
  return { ...legOf(0), config: SPENT, amountsMilli: [req * 1000, rpm * 1000] };
}

test("a spent quota is known for half a minute, at most until its period ends", () => {
  let now = END_MS - 40_000;
  const refusals = new KnownRefusals(() => now);
  const periods = [[{ endMs: END_MS, grantedMilli: 10_000, atMs: now }, undefined]];
  const see = () => refusals.see([spendingLeg(1)], { balancesMilli: [[999, 0]], periods });
  see();
  now += 29_999;
  expect(refusals.refusal([spendingLeg(1)])).toMatchObject({ balancesMilli: [[999, 29_999]] });
  // The rate has been out of sight for too long to refuse by it.
  expect(refusals.refusal([spendingLeg(0, 60)])).toBeUndefined();
  expect(refusals.refusal([spendingLeg(1)], true)).toBeUndefined();
  now += 1;
  expect(refusals.refusal([spendingLeg(1)])).toBeUndefined();
  see();
  now = END_MS - 1;
  expect(refusals.refusal([spendingLeg(1)])).toBeDefined();
  now = END_MS;
  expect(refusals.refusal([spendingLeg(1)])).toBeUndefined();
});

test("a quota with a token left is known for a second, as all other limits are", () => {
  let now = END_MS - 40_000;
  const refusals = new KnownRefusals(() => now);
  const periods = [[{ endMs: END_MS, grantedMilli: 10_000, atMs: now }, undefined]];
  refusals.see([spendingLeg(5)], { balancesMilli: [[1000, 0]], periods });
  now += 999;
  expect(refusals.refusal([spendingLeg(5)], true)).toBeDefined();
  now += 1;
  expect(refusals.refusal([spendingLeg(5)])).toBeUndefined();
});

test("the wait of a refusal from memory counts from now, not from when the balance was shown", () => {
  let now = END_MS - 40_000;
  const refusals = new KnownRefusals(() => now);
  const periods = [[{ endMs: END_MS, grantedMilli: 10_000, atMs: now }, undefined]];
  refusals.see([spendingLeg(1)], { balancesMilli: [[0, 0]], periods });
  now += 20_000;
  const known = refusals.refusal([spendingLeg(1)]);
  expect(known?.periods?.[0]?.[0]).toEqual({ endMs: END_MS, grantedMilli: 10_000, atMs: now });
});
