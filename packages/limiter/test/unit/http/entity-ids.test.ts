/** Keys become legal entity ids, two keys never the same one. */

import { checkEntityId } from "@zae-limiter/limiter/domain/names.ts";
import { entityIdOf, keyOfEntityId } from "@zae-limiter/limiter/http/entity-ids.ts";
import { property } from "@zae-limiter/test-support/property.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const key = fc.oneof(
  fc.string({ minLength: 1, maxLength: 60, unit: "grapheme" }),
  fc.stringMatching(/^(enc|sha256|tag|key)[:@a-f0-9]{0,8}$/).filter((text) => text !== ""),
);

property("every key becomes a legal entity id", [key], (text) => {
  checkEntityId(entityIdOf(text));
});

property("a key that is short enough can be read back", [key], (text) => {
  const id = entityIdOf(text);
  if (id.startsWith("sha256:")) return;
  expect(keyOfEntityId(id)).toBe(Buffer.from(text, "utf8").toString("utf8"));
});

test.each([
  ["key-1", "key-1"],
  ["sk_live.abc:1@x", "sk_live.abc:1@x"],
  ["::1", "enc:::1"],
  ["a b", "enc:a@20b"],
  ["enc:a", "enc:enc:a"],
  ["upstream:openai", "enc:upstream:openai"],
  ["gateway-key:1", "enc:gateway-key:1"],
  ["tag:blue", "enc:tag:blue"],
  ["tags:blue", "tags:blue"],
  ["é", "enc:@c3@a9"],
])("the key %s becomes the id %s", (text, id) => {
  expect(entityIdOf(text)).toBe(id);
});

test("a key that is too long is hashed, and differs from a key that looks like the hash", () => {
  const id = entityIdOf("x".repeat(300));
  expect(id).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(entityIdOf(id)).toBe(`enc:${id}`);
});

test("keys that are not valid Unicode become different entities", () => {
  const keys = [
    "\ud800",
    "\ud801",
    "\ufffd",
    "a\udc00",
    "\ud800".repeat(300),
    "\ud801".repeat(300),
  ];
  const ids = keys.map(entityIdOf);
  expect(new Set(ids).size).toBe(keys.length);
  for (const id of ids) checkEntityId(id);
  expect(keyOfEntityId(ids[0] as string)).toBe(ids[0]);
});

test("an id that was not made here is refused", () => {
  expect(() => keyOfEntityId("enc:@zz")).toThrow(/hexadecimal/);
});
