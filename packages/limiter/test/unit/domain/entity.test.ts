import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkJsonObject } from "@zae-limiter/limiter/domain/json.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

describe("Entity", () => {
  test("an entity without a parent is a parent, and one with a parent a child (A036)", () => {
    const parent = new Entity({ id: "project-1" });
    expect([parent.isParent, parent.isChild]).toEqual([true, false]);
    const child = new Entity({ id: "key-1", parentId: "project-1" });
    expect([child.isParent, child.isChild]).toEqual([false, true]);
  });

  test("fields of an entity that are not given have a harmless default", () => {
    expect(new Entity({ id: "key-1" })).toMatchObject({
      id: "key-1",
      name: undefined,
      parentId: undefined,
      cascade: false,
      metadata: {},
      createdAt: undefined,
    });
  });

  test("an entity does not change", () => {
    const entity = new Entity({ id: "key-1", cascade: true });
    expect(() => Object.assign(entity, { cascade: false })).toThrow(TypeError);
  });
});

describe("checkJsonObject", () => {
  test("metadata that DynamoDB could not store is refused: nameless members, extreme numbers", () => {
    for (const wrong of [{ "": 1 }, { a: { "": 1 } }, { a: 1e126 }, { a: [1e-131] }]) {
      expect(() => checkJsonObject("metadata", wrong)).toThrow(ValidationError);
    }
    expect(checkJsonObject("metadata", { a: 0, b: -1e125, c: 1e-130 })).toEqual({
      a: 0,
      b: -1e125,
      c: 1e-130,
    });
  });

  test("checkJsonObject copies and freezes, all the way down", () => {
    const tags = ["a"];
    const given = { owner: { name: "x", tags }, count: 1.5, none: null, yes: true };
    const copy = checkJsonObject("metadata", given);
    expect(copy).toEqual(given);
    tags.push("b");
    given.owner.name = "y";
    expect(copy).toEqual({ owner: { name: "x", tags: ["a"] }, count: 1.5, none: null, yes: true });
    expect(() => Object.assign(copy.owner as object, { name: "z" })).toThrow(TypeError);
  });

  test("members that every object has are only names", () => {
    const hostile = JSON.parse('{"__proto__": {"admin": true}, "constructor": 1}') as unknown;
    const copy = checkJsonObject("metadata", hostile);
    expect(Object.keys(copy)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect("admin" in copy).toBe(false);
  });

  test("a member that is undefined is left out, like in JSON", () => {
    expect(Object.keys(checkJsonObject("metadata", { a: undefined, b: 1 }))).toEqual(["b"]);
  });

  test.each([
    [{ at: new Date(0) }, "metadata.at"],
    [{ list: [1, () => 1] }, "metadata.list[1]"],
    [{ list: [undefined] }, "metadata.list[0]"],
    [{ list: new Array<number>(1) }, "metadata.list[0]"],
    [{ big: 1n }, "metadata.big"],
    [{ no: Number.NaN }, "metadata.no"],
    [{ no: Number.POSITIVE_INFINITY }, "metadata.no"],
    [{ map: new Map() }, "metadata.map"],
  ])("checkJsonObject refuses %o and names the place", (value, place) => {
    const error = refusal(() => checkJsonObject("metadata", value));
    expect(error.field).toBe("metadata");
    expect(error.reason).toContain(`expected JSON at ${place}, got`);
  });

  test("checkJsonObject refuses what is no object, and what is too deep or goes in circles", () => {
    for (const value of [undefined, null, "x", 5, [], new Date(0)]) {
      expect(refusal(() => checkJsonObject("metadata", value)).reason).toContain("plain object");
    }
    const deep = (levels: number, wrap: (inner: unknown) => unknown) => {
      let value: unknown = "x";
      for (let level = 0; level < levels; level += 1) value = wrap(value);
      return { value };
    };
    const wraps = [(inner: unknown) => [inner], (inner: unknown) => ({ inner })];
    for (const wrap of wraps) {
      expect(checkJsonObject("metadata", deep(27, wrap))).toEqual(deep(27, wrap));
      const error = refusal(() => checkJsonObject("metadata", deep(28, wrap)));
      expect(error.reason).toContain("nested deeper than 28 levels");
    }
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(refusal(() => checkJsonObject("metadata", circle)).reason).toContain("nested deeper");
  });
});
