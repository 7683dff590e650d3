import { InvalidNameError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkLimits, Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitJson } from "@zae-limiter/limiter/domain/limit-spec.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const TOKENS_MAX = 1_000_000_000_000;
const NUMBERS = { name: "rpm", capacity: 100, refillAmount: 100, refillPeriodSeconds: 60 };

/** Values that must never pass for a number of tokens or seconds. */
const NOT_A_COUNT: readonly unknown[] = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1.5,
  2 ** 53,
  "5",
  true,
  1n,
  null,
  {},
  [5],
];

/** Calls that TypeScript would not let through, as they come from JavaScript. */
function untyped(call: unknown): (...values: unknown[]) => unknown {
  return call as (...values: unknown[]) => unknown;
}

describe("factories", () => {
  test("a factory makes a rate per second, minute, hour or day (A020)", () => {
    expect(Limit.perMinute("rpm", 100)).toMatchObject(NUMBERS);
    expect(Limit.perSecond("rps", 5).refillPeriodSeconds).toBe(1);
    expect(Limit.perHour("rph", 5).refillPeriodSeconds).toBe(3600);
    expect(Limit.perDay("rpd", 5).refillPeriodSeconds).toBe(86_400);
  });

  test("a burst is the capacity, above or below the rate (A021)", () => {
    const limit = Limit.perMinute("rpm", 100, { burst: 150 });
    expect(limit).toMatchObject({ capacity: 150, refillAmount: 100 });
    expect(Limit.perMinute("rpm", 100, { burst: 50 })).toMatchObject({ capacity: 50 });
  });

  test("a limit has its rate per second, for display (A022)", () => {
    expect(Limit.perMinute("rpm", 60).refillRate).toBe(1);
  });

  test("the arithmetic gets milli-tokens and milliseconds", () => {
    expect(Limit.perMinute("rpm", 100, { burst: 150 }).rate).toEqual({
      capacityMilli: 150_000,
      refillMilli: 100_000,
      periodMs: 60_000,
    });
  });

  test("a burst that is no options object is refused, not ignored", () => {
    for (const options of [150, "150", null, true, [150]]) {
      const error = refusal(() => untyped(Limit.perMinute)("rpm", 100, options));
      expect(error.field).toBe("options");
      expect(error.reason).toContain("{ burst");
    }
    expect(refusal(() => untyped(Limit.perDay)("rpd", 1, { burst: "9" })).field).toBe("capacity");
  });
});

describe("checks", () => {
  test.each([
    ["capacity", { capacity: 0 }],
    ["capacity", { capacity: -1 }],
    ["refill_amount", { refillAmount: 0 }],
    ["refill_amount", { refillAmount: -1 }],
    ["refill_period_seconds", { refillPeriodSeconds: 0 }],
    ["refill_period_seconds", { refillPeriodSeconds: -1 }],
  ])("%s must be positive: %o (A023)", (field, change) => {
    const error = refusal(() => Limit.custom({ ...NUMBERS, ...change }));
    expect(error.field).toBe(field);
    expect(error.message).toMatch(/^Invalid [a-zA-Z]+: must be positive, got/);
    expect(error.message).toContain(Object.keys(change)[0]);
  });

  test.each([
    ["capacity", "capacity"],
    ["refillAmount", "refill_amount"],
    ["refillPeriodSeconds", "refill_period_seconds"],
  ])("%s must be a whole number that a number can hold", (property, field) => {
    for (const value of NOT_A_COUNT) {
      const error = refusal(() => untyped(Limit.custom)({ ...NUMBERS, [property]: value }));
      expect(error.field).toBe(field);
      expect(error.reason).toMatch(/expected a whole number, got|must be at most/);
    }
  });

  test("10^12 tokens is the most, and its milli-tokens are still exact", () => {
    const largest = Limit.custom({ ...NUMBERS, capacity: TOKENS_MAX, refillAmount: TOKENS_MAX });
    expect(largest.rate.capacityMilli).toBe(10 ** 15);
    expect(() => Limit.perMinute("rpm", TOKENS_MAX + 1)).toThrow(ValidationError);
    expect(() => Limit.perMinute("rpm", 1, { burst: TOKENS_MAX + 1 })).toThrow(ValidationError);
  });

  test("the name is checked first", () => {
    expect(() => Limit.custom({ ...NUMBERS, name: "1rpm", capacity: 0 })).toThrow(InvalidNameError);
    expect(() => Limit.custom({ ...NUMBERS, name: "wcu" })).toThrow(/reserved/);
  });

  test("a value that is not a specification at all is a ValidationError too", () => {
    for (const value of [undefined, null, 5, "rpm:100"]) {
      expect(refusal(() => untyped(Limit.custom)(value)).field).toBe("limit");
      expect(refusal(() => untyped(Limit.fromJSON)(value)).field).toBe("limit");
    }
    expect(refusal(() => untyped(Limit.from)(5)).field).toBe("limit");
    expect(refusal(() => untyped(Limit.parse)(5)).field).toBe("limit");
  });

  test("an unknown field is refused, not ignored", () => {
    const spec = { ...NUMBERS, burst: 9 };
    expect(refusal(() => untyped(Limit.custom)(spec)).field).toBe("limit.burst");
    const json = { ...Limit.custom(NUMBERS).toJSON(), refillAmount: 9 };
    expect(refusal(() => untyped(Limit.fromJSON)(json)).field).toBe("limit.refillAmount");
    const session = { kind: "session", seconds: 5, after: 9 };
    const calendar = { kind: "quota", cron: "0 0 * * *", timeZone: "UTC", carry: "rest" };
    for (const rule of [session, { ...calendar, after: 9 }]) {
      const resetting = { ...NUMBERS, refillAmount: 0, refillPeriodSeconds: 1, rule };
      expect(refusal(() => untyped(Limit.custom)(resetting)).field).toBe("rule.after");
    }
  });

  test("names of things every object has are harmless; __proto__ is refused", () => {
    for (const name of ["constructor", "toString", "hasOwnProperty", "valueOf"]) {
      expect(Limit.parse(`${name}:5`)).toMatchObject({ name, capacity: 5 });
    }
    expect(() => Limit.perMinute("__proto__", 5)).toThrow(InvalidNameError);
  });
});

describe("values", () => {
  test("a limit is immutable, and its JSON reads back equal (A024)", () => {
    const limit = Limit.perMinute("tpm", 10_000, { burst: 15_000 });
    expect(() => Object.assign(limit, { capacity: 1 })).toThrow(TypeError);
    expect(() => Object.assign(limit.rate, { capacityMilli: 1 })).toThrow(TypeError);
    expect(Object.isFrozen(limit)).toBe(true);
    const json = JSON.parse(JSON.stringify(limit)) as LimitJson;
    expect(json).toEqual({
      name: "tpm",
      capacity: 15_000,
      refill_amount: 10_000,
      refill_period_seconds: 60,
    });
    expect(Limit.fromJSON(json).equals(limit)).toBe(true);
    expect(Limit.fromJSON(json)).toEqual(limit);
  });

  test.each([
    [{ name: "rph" }],
    [{ capacity: 101 }],
    [{ refillAmount: 101 }],
    [{ refillPeriodSeconds: 61 }],
  ])("another number or name is another limit: %o", (change) => {
    const limit = Limit.custom(NUMBERS);
    expect(limit.equals(Limit.custom({ ...NUMBERS }))).toBe(true);
    expect(limit.equals(Limit.custom({ ...NUMBERS, ...change }))).toBe(false);
  });
});

describe("mini-language", () => {
  test.each([
    ["rpm:100", 100, 100, 60, "rpm:100/min"],
    ["tpm:10000/min:15000", 15_000, 10_000, 60, "tpm:10000/min:15000"],
    ["burst:5/10sec", 5, 5, 10, "burst:5/10sec"],
    ["rpd:50/day", 50, 50, 86_400, "rpd:50/day"],
    ["r:1/sec", 1, 1, 1, "r:1/sec"],
    ["r:1/24hour", 1, 1, 86_400, "r:1/day"],
    ["r:1/90min", 1, 1, 5400, "r:1/90min"],
    ["r:7:3", 3, 7, 60, "r:7/min:3"],
    ["rps:7", 7, 7, 1, "rps:7/sec"],
    ["rpm:7", 7, 7, 60, "rpm:7/min"],
    ["tph:7", 7, 7, 3600, "tph:7/hour"],
    ["rpd:7", 7, 7, 86_400, "rpd:7/day"],
    ["rpd:7:9", 9, 7, 86_400, "rpd:7/day:9"],
    ["tpd:7 soft", 7, 7, 86_400, "tpd:7/day soft"],
    ["itpm:7", 7, 7, 60, "itpm:7/min"],
    ["otpd:7", 7, 7, 86_400, "otpd:7/day"],
    ["RPD:7", 7, 7, 60, "RPD:7/min"],
    ["daily-rpd:7", 7, 7, 60, "daily-rpd:7/min"],
    ["trps2:7", 7, 7, 60, "trps2:7/min"],
    ["r:7/minute", 7, 7, 60, "r:7/min"],
    ["r:7/2minutes", 7, 7, 120, "r:7/2min"],
    ["r:7/d", 7, 7, 86_400, "r:7/day"],
    ["r:7/h", 7, 7, 3600, "r:7/hour"],
    ["r:7/s", 7, 7, 1, "r:7/sec"],
    ["r:1k", 1000, 1000, 60, "r:1000/min"],
    ["r:2M/day:3M", 3_000_000, 2_000_000, 86_400, "r:2000000/day:3000000"],
    ["r:1_000/min:10_000", 10_000, 1000, 60, "r:1000/min:10000"],
  ])("the mini-language reads %s", (text, capacity, refillAmount, refillPeriodSeconds, printed) => {
    const limit = Limit.parse(text);
    expect(limit).toMatchObject({ capacity, refillAmount, refillPeriodSeconds });
    expect(String(limit)).toBe(printed);
    expect(Limit.from(text).equals(limit)).toBe(true);
    expect(Limit.from(limit)).toBe(limit);
  });

  test.each([
    ["", "expected name:rate"],
    ["rpm", "expected name:rate"],
    ["rpm:1:2:3", "expected name:rate"],
    ["rpm:1/min/min", "expected name:rate"],
    ["rpm:", "rate must be a whole number"],
    ["rpm:many", "rate must be a whole number"],
    ["rpm:1.5", "rate must be a whole number"],
    ["rpm:1e3", "rate must be a whole number"],
    ["rpm:0x10", "rate must be a whole number"],
    ["rpm: 100", "rate must be a whole number"],
    ["rpm:+5", "rate must be a whole number"],
    ["rpm:99999999999999999999", "rate has too many digits"],
    ["rpm:0", 'the rate must be positive, got "0" in "rpm:0"'],
    ["rpm:-5", "rate must be positive"],
    ["rpm:5:0", "burst must be positive"],
    ["rpm:5/0min", 'the period must be positive, got "0min" in "rpm:5/0min"'],
    ["rpm:100 SOFT", "rate must be a whole number"],
    ["rpm:100:", "burst must be a whole number"],
    ["rpm:100/fortnight", "period must be sec, min, hour or day"],
    ["rpm:100/fortnight", "or of a quota week, month, quarter, year, session:5hour or cron(…)"],
    ["x:5 concurent", 'and after it come only concurrent, soft and alerts, got "5 concurent"'],
    ["rpm:100/MIN", "period must be sec, min, hour or day"],
    ["rpm:100/m", "m may be a minute or a month: which? Write min or month"],
    ["rpm:100/5m", "m may be a minute or a month: which? Write min or month"],
    ["rpm:1__000", "rate must be a whole number"],
    ["rpm:1_", "rate must be a whole number"],
    ["rpm:1K", "rate must be a whole number"],
    ["rpm:9999999999999999k", "rate has too many digits"],
    ["rpm:0k", "rate must be positive"],
    ["parallel: concurrent", "count must be a whole number"],
    ["parallel:0 concurrent", "count must be positive"],
    ["parallel:20/min concurrent", "slots have no period and no burst"],
    ["parallel:20:30 concurrent", "slots have no period and no burst"],
    ["parallel:20concurrent", "rate must be a whole number"],
    ["usd:$5 concurrent", '"usd:$5 concurrent"'],
    ["rpm:100/", "period must be sec, min, hour or day"],
    ["rpm:100/60", "period must be sec, min, hour or day"],
    ["rpm:100/constructor", "period must be sec, min, hour or day"],
    ["rpm:100/-1min", "period must be sec, min, hour or day"],
  ])("the mini-language refuses %o and says why", (text, reason) => {
    const error = refusal(() => Limit.parse(text));
    expect(error.field).toBe("limit");
    expect(error.value).toBe(text);
    expect(error.reason).toContain(reason);
  });

  test.each([
    ["rpm:5/999999999999day", "Invalid refillPeriodSeconds: must be at most"],
    ["wcu:5", "reserved"],
    [" rpm:5", "must start with a letter"],
    ["rpm:5/min\n", "period must be sec, min, hour or day"],
  ])(
    "the mini-language refuses the numbers and names of %o like the factories do",
    (text, reason) => {
      expect(refusal(() => Limit.parse(text)).message).toContain(reason);
    },
  );

  test("a text whose name states another period warns the process once, with a code", async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => void warnings.push(warning);
    process.on("warning", listener);
    for (const text of ["rpd:1003/min", "rpd:1003/min", "rpd:1003", "rpd:1003/24hour", "r:1/day"]) {
      Limit.parse(text);
    }
    Limit.parse("tpm:500/30sec:1000");
    // Warnings are emitted in the next turn of the process.
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listener);
    expect(warnings).toMatchObject([{ code: "ZAEL_LIMIT_NAME" }]);
    expect(warnings[0]?.message).toBe(
      "In rpd:1003/min, the limit rpd refills per min, and its name says per day: " +
        "write /day, or give it another name",
    );
  });

  const letter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const name = fc
    .tuple(
      fc.constantFrom(...letter),
      fc.string({ unit: fc.constantFrom(...letter, ..."0123456789_.-"), maxLength: 63 }),
    )
    .map(([first, rest]) => first + rest)
    .filter((text) => text !== "wcu");
  const tokens = fc.oneof(
    fc.integer({ min: 1, max: 1000 }),
    fc.integer({ min: 1, max: TOKENS_MAX }),
  );
  const spec = fc.record({
    name,
    capacity: tokens,
    refillAmount: tokens,
    refillPeriodSeconds: fc.oneof(
      fc.constantFrom(1, 60, 3600, 86_400, 604_800),
      fc.integer({ min: 1, max: 1_000_000_000 }),
    ),
  });

  property("a limit that is written and parsed again is equal", [spec], (fields) => {
    const limit = Limit.custom(fields);
    expect(Limit.parse(limit.toString()).equals(limit)).toBe(true);
    expect(Limit.fromJSON(limit.toJSON()).equals(limit)).toBe(true);
  });

  property(
    "any text is either a limit or a ValidationError",
    [fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."a:/0123456789min-.#\n ") }))],
    (text) => {
      try {
        expect(Limit.parse(text)).toBeInstanceOf(Limit);
      } catch (error) {
        expect(error).toBeInstanceOf(ValidationError);
      }
    },
  );
});

describe("checkLimits", () => {
  test("checkLimits takes limits and texts, in their order", () => {
    const tokens = Limit.perMinute("tpm", 5);
    expect(checkLimits(["rpm:100", tokens]).map(String)).toEqual(["rpm:100/min", "tpm:5/min"]);
    expect(checkLimits([])).toEqual([]);
  });

  test("checkLimits refuses a name that is there twice, and what is no list of limits", () => {
    expect(refusal(() => checkLimits(["rpm:1", "rpm:2"])).reason).toContain('"rpm" is given twice');
    for (const value of [undefined, null, "rpm:1", { rpm: 1 }, Limit.perMinute("rpm", 1)]) {
      expect(refusal(() => untyped(checkLimits)(value)).field).toBe("limits");
    }
    for (const value of [[5], [null], [{ ...NUMBERS }], new Array<string>(1)]) {
      expect(refusal(() => untyped(checkLimits)(value)).field).toBe("limit");
    }
  });
});
