import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  ANY,
  checkByTable,
  FLAG,
  FUNCTION,
  instanceOf,
  number,
  OBJECT,
  type OptionCheck,
  oneOf,
  TEXT,
  unknownOption,
  whole,
} from "@zae-limiter/limiter/domain/options.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

const TABLE = {
  size: { check: whole(1, 9), default: 3 },
  mode: { check: oneOf("on", "off") },
} as const;

describe("checkByTable", () => {
  test("checkByTable returns the given options with the defaults of the others", () => {
    expect(checkByTable({}, TABLE)).toEqual({ size: 3 });
    expect(checkByTable({ size: undefined, mode: "on" }, TABLE)).toEqual({ size: 3, mode: "on" });
    expect(checkByTable({ size: 9 }, TABLE)).toEqual({ size: 9 });
  });

  test("checkByTable refuses a name before any value, and lists the options", () => {
    expect(refusal(() => checkByTable({ size: 0, sise: 1 }, TABLE))).toMatchObject({
      field: "sise",
      reason: '"sise" is not an option; expected size, mode',
    });
    expect(refusal(() => checkByTable({ sise: undefined }, TABLE)).field).toBe("sise");
    expect(refusal(() => checkByTable({ toString: 1 }, TABLE)).field).toBe("toString");
  });

  test("checkByTable refuses a value that the option does not take", () => {
    expect(refusal(() => checkByTable({ size: 10 }, TABLE))).toMatchObject({ field: "size" });
    expect(refusal(() => checkByTable({ mode: null }, TABLE)).reason).toBe(
      'expected "on" or "off", got null',
    );
  });

  test("checkByTable refuses everything but a plain object", () => {
    for (const wrong of [null, undefined, 5, "size", [], new Map([["size", 5]])]) {
      expect(() => checkByTable(wrong as object, TABLE)).toThrow(ValidationError);
    }
    expect(() => checkByTable(null as never, TABLE)).toThrow("an object like { size, mode }");
  });

  test("checkByTable accepts an unknown name that the caller accepts", () => {
    const accepting = (name: string, value: unknown) =>
      name === "other" ? undefined : unknownOption(name, value, ["other"]);
    expect(checkByTable({ other: 5 }, TABLE, accepting)).toEqual({ size: 3, other: 5 });
    expect(() => checkByTable({ more: 5 }, TABLE, accepting)).toThrow("expected other");
  });
});

describe("kinds of options", () => {
  class Tool {}
  class Private {
    private constructor(readonly name: string) {}
    static make = () => new Private("made");
  }

  const taken: readonly (readonly [string, OptionCheck, readonly unknown[]])[] = [
    ["ANY", ANY, [null, 1, "x"]],
    ["FLAG", FLAG, [true, false]],
    ["FUNCTION", FUNCTION, [() => 1, Tool]],
    ["TEXT", TEXT, ["", "x"]],
    ["OBJECT", OBJECT, [{}, []]],
    ["whole(1, 9)", whole(1, 9), [1, 9]],
    ["number(0)", number(0), [0, 0.5, Number.POSITIVE_INFINITY]],
    ["number(0, 1)", number(0, 1), [0, 0.5, 1]],
    ["oneOf", oneOf("a", "b"), ["a", "b"]],
    ["instanceOf", instanceOf(Tool), [new Tool()]],
    ["instanceOf, private", instanceOf(Private), [Private.make()]],
  ];
  test.each(taken)("%s takes its values", (_, check, values) => {
    for (const value of values) expect(() => check("field", value)).not.toThrow();
  });

  const refused: readonly (readonly [string, OptionCheck, unknown, string])[] = [
    ["FLAG", FLAG, 1, "expected true or false, got 1"],
    ["FUNCTION", FUNCTION, "f", 'expected a function, got "f"'],
    ["TEXT", TEXT, 5, "expected a string, got 5"],
    ["OBJECT", OBJECT, "x", 'expected an object, got "x"'],
    ["whole", whole(1, 9), 1.5, "expected a whole number, got 1.5"],
    ["number(0)", number(0), -1, "expected a number >= 0, got -1"],
    ["number(0)", number(0), Number.NaN, "expected a number >= 0, got NaN"],
    ["number(0, 1)", number(0, 1), 2, "expected a number from 0 to 1, got 2"],
    [
      "a finite number",
      number(0, Number.MAX_VALUE),
      Number.POSITIVE_INFINITY,
      "expected a number >= 0, got Infinity",
    ],
    ["oneOf", oneOf("a", "b", "c"), "d", 'expected "a" or "b" or "c", got "d"'],
    ["instanceOf", instanceOf(Tool), {}, "expected a Tool, got an object"],
  ];
  test.each(refused)("%s refuses a value and says what it expects", (_, check, value, reason) => {
    expect(refusal(() => check("field", value))).toMatchObject({ field: "field", reason });
  });
});
