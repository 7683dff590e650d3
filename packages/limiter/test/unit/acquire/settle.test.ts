/** Settling plain amounts, which is decided in one step, and all others, which is not. */

import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const LIMITS = ["rpd:100/day", "tpm:10000/day", "tpd:50000/day"];
const tokens = fc.nat({ max: 900 });
const amounts = fc.record({ rpd: fc.nat({ max: 3 }), tpm: tokens, tpd: tokens });
/** Some of the limits, in any order, and names that the entity has no limit for. */
const settled = fc.record(
  { tpd: tokens, tpm: tokens, rpd: fc.nat({ max: 3 }), itpm: tokens },
  { requiredKeys: [] },
);

/** A little less rounds up to the same amount, and is no whole number. */
function fractions(whole: Readonly<Record<string, number | undefined>>): Record<string, number> {
  const entries = Object.entries(whole).map(([name, amount]) => [name, (amount ?? 0) - 0.25]);
  return Object.fromEntries(entries);
}

async function ended(
  limiter: RateLimiter,
  entityId: string,
  consume: Record<string, number>,
  steps: readonly Record<string, number>[],
  isFlushed: boolean,
) {
  const request = { entityId, resource: "api", consume, missingLimits: "ignore" } as const;
  // The second acquire of a bucket is on the fast path.
  await (await limiter.acquire({ ...request, consume: {} })).commit();
  const lease = await limiter.acquire(request);
  const seen = [];
  for (const step of steps) {
    lease.settle(step);
    seen.push(lease.consumed);
    if (isFlushed) await lease.flush();
  }
  await lease.commit();
  return { seen, left: await limiter.available({ entityId, resource: "api" }) };
}

test("whole amounts settle to the same as amounts that round up to them", async () => {
  const limiter = await RateLimiter.open("memory:", { clock: () => 1_700_000_000_000 });
  await limiter.repository.limits.setSystem(LIMITS);
  let calls = 0;
  await fc.assert(
    fc.asyncProperty(
      amounts,
      fc.array(settled, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (consume, given, isFlushed) => {
        calls += 1;
        const steps = given as Record<string, number>[];
        const whole = await ended(limiter, `whole-${calls}`, consume, steps, isFlushed);
        const split = steps.map(fractions);
        const rounded = await ended(limiter, `rounded-${calls}`, consume, split, isFlushed);
        expect(whole).toEqual(rounded);
        const last = Object.assign({}, consume, ...steps) as Record<string, number>;
        expect(whole.left).toEqual({
          rpd: 100 - (last["rpd"] ?? 0),
          tpm: 10_000 - (last["tpm"] ?? 0),
          tpd: 50_000 - (last["tpd"] ?? 0),
        });
      },
    ),
  );
  await limiter.close();
});

test("an amount that is no whole number of tokens never settles in one step", async () => {
  const warned: string[] = [];
  const onWarning = ({ kind }: { kind: string }) => void warned.push(kind);
  const limiter = await RateLimiter.open("memory:", { onWarning });
  await limiter.repository.limits.setSystem(LIMITS);
  const request = { entityId: "key-1", resource: "api", consume: { rpd: 1, tpm: 500 } };
  await (await limiter.acquire(request)).commit();
  const lease = await limiter.acquire(request);
  lease.settle({ tpm: undefined });
  lease.settle({ tpm: -1 });
  expect(warned).toEqual(["amount_missing", "amount_negative"]);
  expect(lease.consumed).toEqual({ rpd: 1 });
  expect(() => lease.settle({ tpm: 1, itpm: 1 })).toThrow('there is no limit "itpm" here');
  expect(() => lease.settle({ tpm: "1" } as never)).toThrow("expected a number");
  expect(() => lease.settle({ tpm: 1e16 })).toThrow("tpm");
  expect(lease.consumed).toEqual({ rpd: 1 });
  await lease.commit();
  expect(() => lease.settle({ tpm: 1 })).toThrow("not active");
  await limiter.close();
});
