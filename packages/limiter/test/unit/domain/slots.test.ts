import { hasSlots } from "@zae-limiter/limiter/core/bucket.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitJson } from "@zae-limiter/limiter/domain/limit-spec.ts";
import { statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

const PARALLEL = Limit.concurrent("parallel", 20);

describe("limits of slots", () => {
  test.each([
    ["parallel:20 concurrent", "parallel:20 concurrent", false],
    ["parallel:1k concurrent", "parallel:1000 concurrent", false],
    ["parallel:20 concurrent soft", "parallel:20 concurrent soft", true],
    ["rpm:20  concurrent", "rpm:20 concurrent", false],
  ])("%s is a limit of slots", (text, printed, soft) => {
    const limit = Limit.parse(text);
    expect(limit).toMatchObject({ kind: "concurrency", refillAmount: 0, soft });
    expect(hasSlots(limit.rate)).toBe(true);
    expect(String(limit)).toBe(printed);
    expect(Limit.parse(printed).equals(limit)).toBe(true);
    expect(Limit.fromJSON(JSON.parse(JSON.stringify(limit)) as LimitJson).equals(limit)).toBe(true);
  });

  test("slots are made by a factory, by numbers and by JSON alike", () => {
    const numbers = { capacity: 20, refillAmount: 0, refillPeriodSeconds: 1 };
    const custom = Limit.custom({ name: "parallel", ...numbers, kind: "concurrency" });
    expect(custom.equals(PARALLEL)).toBe(true);
    expect(PARALLEL.toJSON()).toEqual({
      name: "parallel",
      capacity: 20,
      refill_amount: 0,
      refill_period_seconds: 1,
      concurrent: true,
    });
    expect(Limit.concurrent("parallel", 20, { soft: true }).soft).toBe(true);
  });

  test.each(["usd:20 concurrent", "usd:$20 concurrent", "usd_cards:$20 concurrent"])(
    "%s is refused, because money is spent and not held",
    (text) => {
      expect(refusal(() => Limit.parse(text)).message).toContain("is money, which is spent");
    },
  );

  test("slots equal no other kind of limit with their numbers", () => {
    const session = Limit.quota("parallel", 20, { after: { seconds: 60 } });
    expect(PARALLEL.equals(session)).toBe(false);
    expect(PARALLEL.equals(Limit.concurrent("parallel", 21))).toBe(false);
    expect(hasSlots(session.rate)).toBe(false);
    expect(hasSlots(Limit.perMinute("parallel", 20).rate)).toBe(false);
  });

  test("numbers without a refill are no limit unless they are said to be slots", () => {
    const numbers = { name: "parallel", capacity: 20, refillAmount: 0, refillPeriodSeconds: 1 };
    expect(refusal(() => Limit.custom(numbers)).field).toBe("refill_amount");
    const kind = "concurrency";
    expect(refusal(() => Limit.custom({ ...numbers, kind, refillAmount: 5 })).field).toBe(
      "refill_amount",
    );
    const rule = { kind: "session", seconds: 60 } as const;
    expect(refusal(() => Limit.custom({ ...numbers, kind, rule })).field).toBe("kind");
    expect(refusal(() => Limit.custom({ ...numbers, kind: "quota" })).field).toBe("kind");
    expect(refusal(() => Limit.concurrent("usd", 5)).field).toBe("name");
  });

  test("the wait for a slot is an estimate, and more than all slots never fit", () => {
    const check = { entityId: "key-1", resource: "gpt-4", limit: PARALLEL, requested: 1 };
    expect(statusOf(check, 1000, PARALLEL.rate)).toMatchObject({
      exceeded: false,
      estimated: true,
    });
    const refused = { exceeded: true, deficit: 1, estimated: true };
    expect(statusOf(check, 0, PARALLEL.rate)).toMatchObject({ ...refused, retryAfterSeconds: 1 });
    const learned = statusOf({ ...check, heldMs: 2500 }, 0, PARALLEL.rate);
    expect(learned).toMatchObject({ ...refused, retryAfterSeconds: 2.5, fullAfterSeconds: 2.5 });
    for (const [heldMs, wait] of [
      [2500, "about 2.5s"],
      [3, "about 0.1s"],
    ] as const) {
      const status = statusOf({ ...check, heldMs }, 0, PARALLEL.rate);
      expect(new RateLimitExceeded([status]).message).toBe(
        `Rate limit exceeded for key-1/gpt-4: [parallel], retry after ${wait}`,
      );
    }
    const large = statusOf({ ...check, requested: 21 }, 20_000, PARALLEL.rate);
    expect(large.retryAfterSeconds).toBe(Number.POSITIVE_INFINITY);
    expect(statusOf({ ...check, requested: 0 }, 20_000, PARALLEL.rate).fullAfterSeconds).toBe(0);
  });
});
