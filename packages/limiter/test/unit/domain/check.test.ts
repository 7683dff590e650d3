import { checkFields, checkInteger, invariant, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

describe("checkInteger", () => {
  test.each([
    [Number.NaN, "expected a whole number, got NaN"],
    [Number.POSITIVE_INFINITY, "expected a whole number, got Infinity"],
    [1.5, "expected a whole number, got 1.5"],
    ["5", 'expected a whole number, got "5"'],
    [true, "expected a whole number, got true"],
    [1n, "expected a whole number, got 1n"],
    [null, "expected a whole number, got null"],
    [undefined, "expected a whole number, got undefined"],
    [[5], "expected a whole number, got an array"],
    [{}, "expected a whole number, got an object"],
    [Symbol("five"), "expected a whole number, got Symbol(five)"],
    [2 ** 53, "must be at most 1000000000000, got 9007199254740992"],
    [-(2 ** 53), "must be positive, got -9007199254740992"],
    [0, "must be positive, got 0"],
    [1_000_000_000_001, "must be at most 1000000000000, got 1000000000001"],
  ])("checkInteger refuses %s and says what was expected and what came", (value, reason) => {
    const error = refusal(() => checkInteger("capacity", value, 1, 1_000_000_000_000));
    expect(error).toMatchObject({ field: "capacity", reason });
  });

  test("checkInteger accepts what lies between the bounds, both included", () => {
    expect(checkInteger("limit", 0, 0, 5)).toBe(0);
    expect(checkInteger("limit", 5, 0, 5)).toBe(5);
    expect(refusal(() => checkInteger("limit", 9, 10, 20)).reason).toBe(
      "must be at least 10, got 9",
    );
  });

  test("no bound lets a number through that has lost digits", () => {
    expect(() => checkInteger("limit", 2 ** 53, 0, Number.POSITIVE_INFINITY)).toThrow(
      ValidationError,
    );
  });
});

describe("show", () => {
  test("show quotes text and shortens a long one", () => {
    expect(show("a\nb")).toBe('"a\\nb"');
    expect(show("x".repeat(1_000_000))).toBe(`"${"x".repeat(50)}..."`);
    expect(show(() => "its source text")).toBe("a function");
    expect(show(-0.5)).toBe("-0.5");
  });
});

describe("invariant", () => {
  test("invariant says that it is our fault", () => {
    expect(() => invariant(false, "a shard has no owner")).toThrow(
      "zae-limiter has a bug: a shard has no owner",
    );
    expect(() => invariant(true, "")).not.toThrow();
  });
});

describe("checkFields", () => {
  test("a typo is refused with what was expected, and what is no plain object too", () => {
    expect(() => checkFields("options", { bust: 5 }, ["burst"])).toThrow(
      'Invalid options.bust: there is no "bust" here; expected burst',
    );
    for (const wrong of [null, undefined, 5, [], new Map([["burst", 5]]), new Date(0)]) {
      expect(() => checkFields("options", wrong, ["burst"])).toThrow(ValidationError);
    }
    expect(() => checkFields("options", Object.create(null), ["burst"])).not.toThrow();
  });
});
