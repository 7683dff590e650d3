import { expect, test } from "vitest";
import { hasPolicy, linkChange, linkTests } from "../../../../src/buckets/distributed/link.ts";
import { shardOf } from "./known.ts";

const LINKED = { cascade: true, parentId: "team" };
const UNLINKED = { cascade: false, parentId: undefined };

test("a bucket with a parent carries it, and one without loses the attribute", () => {
  expect(linkChange(LINKED)).toEqual({ set: { cascade: true, parent_id: "team" } });
  expect(linkChange(UNLINKED)).toEqual({ set: { cascade: false }, remove: ["parent_id"] });
});

test("a bucket that was never stamped with a link passes as one without", () => {
  expect(linkTests(UNLINKED)).toEqual([
    { is: "=", name: "cascade", value: false, orAbsent: true },
    { is: "absent", name: "parent_id" },
  ]);
  expect(linkTests(LINKED)).toEqual([
    { is: "=", name: "cascade", value: true, orAbsent: false },
    { is: "=", name: "parent_id", value: "team" },
  ]);
});

test("a bucket of this library has no policy of the Python library", () => {
  expect(hasPolicy(shardOf(1))).toBe(false);
});
