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
