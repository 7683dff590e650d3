/** Texts of the page that are made from stored data. */

import { deedOf } from "@zae-limiter/dashboard/page/deeds.ts";
import {
  compactAmount,
  seconds,
  wholeAmount,
  withoutBidi,
} from "@zae-limiter/dashboard/page/format.ts";
import { expect, test } from "vitest";

test.each([
  [{ action: "limits_set", details: { disabled: true } }, "switched off"],
  [{ action: "limits_set", details: { disabled: "bypass" } }, "bypassed"],
  [{ action: "limits_set", details: { disabled: null } }, "removed the switch of"],
  [{ action: "limits_set", details: { cascade: false } }, "switched the cascade off for"],
  [{ action: "limits_set", details: { limits: [] } }, "set limits"],
  [{ action: "bucket_topped_up", details: {} }, "topped up a bucket of"],
  [{ action: "store_copied", details: {} }, "copied another store to"],
  [{ action: "something_new", details: {} }, "something_new"],
])("the audit log says of %j that it %s", (event, text) => {
  expect(deedOf(event)).toBe(text);
});

test.each([
  [5, "5.0 s"],
  [3599, "60 min"],
  [172_799, "48 h"],
  [1_036_800, "12 d"],
])("a time of %d seconds is shown as %s", (value, text) => {
  expect(seconds(value)).toBe(text);
});

test("characters that turn the direction of a text around are shown and not obeyed", () => {
  expect(withoutBidi("a\u202eb\u2066c\u200f")).toBe("a\\u202eb\\u2066c\\u200f");
  expect(withoutBidi("plain ünïcödé")).toBe("plain ünïcödé");
});

test.each([
  ["tpm", 15_000, "15,000", "15K"],
  ["usd", 12_500_000, "$12.50", "$12.50"],
  ["usd_audio", 499_998_712, "$499.998712", "$499.99"],
  ["usd", 1234, "$0.001234", "$0.001234"],
  ["usd", -2_505_000, "−$2.505", "−$2.51"],
])("%s: %d is shown as %s, and as %s in little room", (limitName, amount, full, short) => {
  expect(wholeAmount(limitName, amount)).toBe(full);
  expect(compactAmount(limitName, amount)).toBe(short);
});
