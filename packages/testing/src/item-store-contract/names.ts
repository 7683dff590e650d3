/** Attribute names: every legal name works everywhere, and none has a meaning to a store. */

import { attribute, itemWith, type Subject } from "./subject.ts";

const NAMES = [
  "b_gpt-3.5_tk",
  "b_my-limit_tk",
  "a.b.c",
  "a[0]",
  "constructor",
  "toString",
  "hasOwnProperty",
  "__proto__",
  "name",
  "ttl_seconds",
  "status",
  "resource",
  "size",
  "ac",
  "cv",
  "disabled",
  "rf",
  "rn",
  "shard_count",
  "wm",
  "#name",
  ":value",
  "#0",
  ":0",
  "$ref",
  "a name with spaces",
  "Größe",
  "数",
  "\u{1f600}",
  'it\'s "quoted" \\ `so`',
  "0",
  "-",
  "S",
  "M",
  "n".repeat(255),
] as const;

export function namesContract(subject: Subject): void {
  const { expect, test, describeEach } = subject.cases;
  describeEach(NAMES)("%s", (name) => {
    test("an attribute of this name is stored, changed and removed", async () => {
      const { store } = subject;
      const key = subject.key();
      const item = itemWith(key, attribute(name, 5));
      await store.put(item);
      expect(await subject.read(key)).toStrictEqual(item);
      expect((await store.update(key, { add: attribute(name, 2) })).item).toStrictEqual(
        itemWith(key, attribute(name, 7)),
      );
      expect((await store.update(key, { set: attribute(name, "text") })).item).toStrictEqual(
        itemWith(key, attribute(name, "text")),
      );
      expect((await store.update(key, { remove: [name] })).item).toStrictEqual(key);
      expect((await store.update(key, { setIfAbsent: attribute(name, 1) })).item).toStrictEqual(
        itemWith(key, attribute(name, 1)),
      );
    });

    test("an attribute of this name is compared", async () => {
      const { store } = subject;
      const key = subject.key();
      const change = { set: attribute(name, 5) };
      expect((await store.update(key, change, [{ is: "exists", name }])).ok).toBe(false);
      expect((await store.update(key, change, [{ is: "absent", name }])).ok).toBe(true);
      expect((await store.update(key, change, [{ is: "absent", name }])).ok).toBe(false);
      expect((await store.update(key, change, [{ is: "=", name, value: 5 }])).ok).toBe(true);
      expect((await store.update(key, change, [{ is: ">", name, value: 5 }])).ok).toBe(false);
    });

    test("an entry of a map and of a set may have this name", async () => {
      const key = subject.key();
      const item = itemWith(key, { map: attribute(name, attribute(name, true)) });
      await subject.store.put(item);
      // Strict equality would compare what is named `constructor` by identity.
      expect(await subject.read(key)).toEqual(item);
      const { item: after } = await subject.store.update(key, {
        addToSet: Object.fromEntries([[name, [name]]]),
      });
      expect(after).toEqual(itemWith(key, { ...item, ...attribute(name, new Set([name])) }));
    });
  });

  test("no name is taken for another", async () => {
    const key = subject.key();
    // One of them is `ttl`, which the store acts on: it is far in the future.
    const attributes = Object.fromEntries(NAMES.map((name, at) => [name, at]));
    const item = itemWith(key, { ...attributes, ttl: 4_000_000_000 });
    await subject.store.put(item);
    expect(await subject.read(key)).toStrictEqual(item);
    const { item: after } = await subject.store.update(
      key,
      { add: Object.fromEntries(NAMES.map((name) => [name, 100])) },
      NAMES.map((name, value) => ({ is: "=", name, value })),
    );
    expect(after).toStrictEqual(
      itemWith(key, {
        ...Object.fromEntries(NAMES.map((name, at) => [name, at + 100])),
        ttl: 4_000_000_000,
      }),
    );
  });

  test("names that objects inherit are absent", async () => {
    const item = await subject.stored();
    for (const name of ["constructor", "toString", "__proto__"]) {
      const read = await subject.read(item);
      expect(Object.hasOwn(read ?? {}, name)).toBe(false);
      expect((await subject.store.update(item, {}, [{ is: "absent", name }])).ok).toBe(true);
    }
    expect((await subject.store.update(item, { add: { constructor: 1 } })).item).toStrictEqual(
      itemWith(item, attribute("constructor", 1)),
    );
  });
}
