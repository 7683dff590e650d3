import {
  changedLinks,
  effectiveLink,
  hasPolicy,
  linkChange,
  linkInRecord,
  linkTests,
  ownerStamps,
  sameLink,
  UNLINKED,
} from "@zae-limiter/limiter/buckets/leg.ts";
import { describe, expect, test } from "vitest";
import { shardOf } from "./distributed/known.ts";

const KEY = { PK: "ns/ENTITY#child", SK: "#META" };

test("an entity without a record has no link", () => {
  expect(linkInRecord(undefined)).toBe(UNLINKED);
});

test("the link of a record is its flag and its parent", () => {
  const record = { ...KEY, cascade: true, parent_id: "team" };
  expect(linkInRecord(record)).toEqual({ cascade: true, parentId: "team" });
  expect(linkInRecord(KEY)).toEqual(UNLINKED);
});

test.each([
  [{ cascade: false, parentId: "team" }, undefined, false],
  [{ cascade: false, parentId: "team" }, true, true],
  [{ cascade: true, parentId: "team" }, false, false],
  [{ cascade: false, parentId: undefined }, true, false],
])("the link %o with the policy %s cascades: %s", (link, policy, cascade) => {
  expect(effectiveLink(link, policy)).toEqual({ ...link, cascade });
});

test("stamps name the generation and the incarnation of the record, or that there is none", () => {
  expect(ownerStamps(undefined)).toEqual({ pgen: 0, pinc: "-" });
  expect(ownerStamps({ ...KEY, created_at: "2026-01-01" })).toEqual({
    pgen: 0,
    pinc: "2026-01-01",
  });
  const stamped = { ...KEY, pgen: 3, pinc: "x", created_at: "2026-01-01" };
  expect(ownerStamps(stamped)).toEqual({ pgen: 3, pinc: "x" });
});

test("links are the same when both parts are", () => {
  expect(sameLink(UNLINKED, { cascade: false, parentId: undefined })).toBe(true);
  expect(sameLink(UNLINKED, { cascade: true, parentId: undefined })).toBe(false);
  expect(sameLink(UNLINKED, { cascade: false, parentId: "team" })).toBe(false);
});

describe("a link in a bucket", () => {
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
});

test("links that are as the legs were made are no change, and one that differs returns all", () => {
  const parent = { cascade: true, parentId: "team" };
  const legs = [{ link: parent }, { link: UNLINKED }];
  expect(changedLinks(legs, [{ link: { ...parent } }, { link: UNLINKED }])).toBeUndefined();
  expect(changedLinks(legs, [{ link: parent }, { link: parent }])).toEqual([parent, parent]);
});
