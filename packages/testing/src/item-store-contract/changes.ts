/** Changes: what each kind of change does to an item, and several kinds in one. */

import type { Value } from "@zae-limiter/limiter/storage/item.ts";
import type { Change } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Subject } from "./subject.ts";

type Attributes = Readonly<Record<string, Value>>;

export function changesContract(subject: Subject): void {
  const { expect, test } = subject.cases;
  /** Applies the change to an item with these attributes, and to no item if they are undefined. */
  const expectChange = async (
    before: Attributes | undefined,
    change: Change,
    after: Attributes,
  ): Promise<void> => {
    const key = subject.key();
    if (before !== undefined) await subject.store.put({ ...key, ...before });
    const expected = { ok: true, item: { ...key, ...after } };
    expect(await subject.store.update(key, change)).toStrictEqual(expected);
    expect(await subject.read(key)).toStrictEqual(expected.item);
  };

  test("set writes values, whatever was there", async () => {
    await expectChange(
      { a: 1, b: "text", c: true },
      { set: { a: "one", b: null, d: [1, "x"] } },
      { a: "one", b: null, c: true, d: [1, "x"] },
    );
    await expectChange(undefined, { set: { a: 1 } }, { a: 1 });
  });

  test("setIfAbsent leaves what is there", async () => {
    await expectChange(
      { a: 1, b: null, c: "" },
      { setIfAbsent: { a: 2, b: 2, c: 2, d: 2 } },
      { a: 1, b: null, c: "", d: 2 },
    );
    await expectChange(undefined, { setIfAbsent: { a: { b: 1 } } }, { a: { b: 1 } });
  });

  test("add counts up and down", async () => {
    await expectChange({ a: 5, b: 5 }, { add: { a: 3, b: -7 } }, { a: 8, b: -2 });
    await expectChange({ a: 5 }, { add: { a: 0 } }, { a: 5 });
    await expectChange({ a: 5 }, { add: { a: -5 } }, { a: 0 });
  });

  test("add counts an absent attribute as 0", async () => {
    await expectChange({ z: 1 }, { add: { a: 3, b: -7, c: 0 } }, { z: 1, a: 3, b: -7, c: 0 });
    await expectChange(undefined, { add: { a: 3 } }, { a: 3 });
  });

  test("add reads a small bigint back as a number", async () => {
    await expectChange({ a: 5 }, { add: { a: 3n, b: 4n } }, { a: 8, b: 4 });
  });

  test("add is exact over the border of 2^53", async () => {
    const max = Number.MAX_SAFE_INTEGER;
    await expectChange({ a: max }, { add: { a: 1 } }, { a: 2n ** 53n });
    await expectChange({ a: max }, { add: { a: 2 } }, { a: 2n ** 53n + 1n });
    await expectChange({ a: max }, { add: { a: max } }, { a: 2n ** 54n - 2n });
    await expectChange({ a: -max }, { add: { a: -2 } }, { a: -(2n ** 53n) - 1n });
    await expectChange({ a: 2n ** 53n + 1n }, { add: { a: 1 } }, { a: 2n ** 53n + 2n });
    await expectChange({ a: 2n ** 53n + 1n }, { add: { a: -2 } }, { a: max });
    await expectChange({ a: 1 }, { add: { a: 2n ** 70n } }, { a: 2n ** 70n + 1n });
    await expectChange(undefined, { add: { a: 2n ** 70n } }, { a: 2n ** 70n });
  });

  test("add counts decimals whose binary form is exact", async () => {
    await expectChange({ a: 1.5 }, { add: { a: 0.25, b: 0.5 } }, { a: 1.75, b: 0.5 });
    await expectChange({ a: 1.5 }, { add: { a: 2n } }, { a: 3.5 });
  });

  test("remove takes attributes away, there or not", async () => {
    await expectChange({ a: 1, b: 2, c: 3 }, { remove: ["a", "c", "none"] }, { b: 2 });
    await expectChange(undefined, { remove: ["a"] }, {});
  });

  test("addToSet adds members once", async () => {
    await expectChange(
      { a: new Set(["x"]) },
      { addToSet: { a: ["x", "y"], b: ["z"] } },
      { a: new Set(["x", "y"]), b: new Set(["z"]) },
    );
    await expectChange(undefined, { addToSet: { a: ["x"] } }, { a: new Set(["x"]) });
  });

  test("a member given twice is added once", async () => {
    await expectChange(undefined, { addToSet: { a: ["x", "y", "x"] } }, { a: new Set(["x", "y"]) });
  });

  test("deleteFromSet removes members, there or not", async () => {
    await expectChange(
      { a: new Set(["x", "y", "z"]) },
      { deleteFromSet: { a: ["x", "none"], b: ["x"] } },
      { a: new Set(["y", "z"]) },
    );
    await expectChange(
      { a: new Set(["x", "y"]) },
      { deleteFromSet: { a: ["x", "x"] } },
      { a: new Set(["y"]) },
    );
  });

  test("a set that loses its last member is gone", async () => {
    await expectChange(
      { a: new Set(["x", "y"]), b: 1 },
      { deleteFromSet: { a: ["x", "y"] } },
      { b: 1 },
    );
  });

  test("a set without members changes nothing", async () => {
    await expectChange(
      { a: new Set(["x"]) },
      { addToSet: { a: [], b: [] }, deleteFromSet: { c: [] } },
      { a: new Set(["x"]) },
    );
  });

  test("kinds without an attribute change nothing", async () => {
    const nothing: Change = {
      set: {},
      setIfAbsent: {},
      add: {},
      remove: [],
      addToSet: {},
      deleteFromSet: {},
    };
    await expectChange({ a: 1 }, nothing, { a: 1 });
    await expectChange(undefined, nothing, {});
  });

  test("all kinds in one change", async () => {
    const change: Change = {
      set: { a: "new", a2: [1] },
      setIfAbsent: { b: "new", b2: "new" },
      add: { c: 2, c2: -2 },
      remove: ["d", "d2"],
      addToSet: { e: ["y"], e2: ["y"] },
      deleteFromSet: { f: ["x"], f2: ["x"] },
    };
    await expectChange(
      {
        a: "old",
        b: "old",
        c: 1,
        d: "old",
        e: new Set(["x"]),
        f: new Set(["x", "y"]),
        g: "kept",
      },
      change,
      {
        a: "new",
        a2: [1],
        b: "old",
        b2: "new",
        c: 3,
        c2: -2,
        e: new Set(["x", "y"]),
        e2: new Set(["y"]),
        f: new Set(["y"]),
        g: "kept",
      },
    );
    await expectChange(undefined, change, {
      a: "new",
      a2: [1],
      b: "new",
      b2: "new",
      c: 2,
      c2: -2,
      e: new Set(["y"]),
      e2: new Set(["y"]),
    });
  });
}
