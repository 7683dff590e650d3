import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  encodeLimits,
  limitAttributeNames,
  limitNames,
} from "@zae-limiter/limiter/records/config/limit-attributes.ts";
import { decodeRule, zoneOf } from "@zae-limiter/limiter/records/config/rule-attributes.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { pythonItem } from "@zae-limiter/test-support/golden-items.ts";
import { describe, expect, test } from "vitest";

/** The attributes of the limits of an item, of some of them. */
function limitsIn(item: Item, names: readonly string[]) {
  const attributes = limitAttributeNames(item).filter(
    (name) => name === "sched_tz" || names.some((one) => name.startsWith(one)),
  );
  return Object.fromEntries(attributes.map((name) => [name, item[name]]));
}

describe("limits as the Python library stores them", () => {
  test("a quota of each day is stored as in golden item 40", () => {
    const item = pythonItem("40-config-resource-schedules", "ns");
    const limits = [Limit.parse("rpd:10000/day America/New_York"), Limit.parse("tpm:50000/min")];
    expect(encodeLimits(limits)).toEqual(limitsIn(item, ["l_rpd", "l_tpm"]));
    expect(decodeRule(item, "l_", "rpd")).toEqual({ rule: limits[0]?.rule });
    expect(decodeRule(item, "l_", "tpm")).toEqual({ rule: undefined });
  });

  test("a session is stored as in golden item 42", () => {
    const item = pythonItem("42-config-resource-session-quota", "ns");
    const limits = [Limit.parse("rpm:60"), Limit.parse("session:10000/session:5hour")];
    expect(encodeLimits(limits)).toEqual(limitsIn(item, ["l_", "w_"]));
    expect(decodeRule(item, "w_", "session")).toEqual({ rule: limits[1]?.rule });
    expect(limitNames(item)).toEqual(["rpm", "session"]);
  });

  test("a second zone and what is carried have attributes of their own", () => {
    const limits = [
      Limit.parse("b:5/month Asia/Tokyo soft"),
      Limit.quota("a", 5, { every: "day", timeZone: "Europe/Berlin", carry: "rest", carryMax: 3 }),
      Limit.parse("c:5/week"),
    ];
    const item = { PK: "p", SK: "s", ...encodeLimits(limits) };
    expect(item).toMatchObject({
      sched_tz: "Europe/Berlin",
      l_a_rsched: "1m0h0",
      l_a_carry: "rest",
      l_a_cmax: 3,
      l_b_tz: "Asia/Tokyo",
      l_b_soft: true,
      l_c_tz: "UTC",
    });
    expect(item).not.toHaveProperty("l_a_tz");
    expect(zoneOf([...limits].reverse())).toBe("Europe/Berlin");
    for (const { name, rule } of limits) expect(decodeRule(item, "l_", name)).toEqual({ rule });
  });

  test.each([
    ["an expression of another version", { l_q_rsched: "2m0h0" }, "calendar quota"],
    ["a zone that this Node does not have", { sched_tz: "Mars/X" }, "calendar quota"],
    ["an unknown carry", { l_q_carry: "all" }, "calendar quota"],
    ["no expression", { l_q_rsched: null }, "calendar quota"],
  ])("%s makes a quota that cannot be enforced", (_, change, kind) => {
    const item = { PK: "p", SK: "s", ...encodeLimits([Limit.parse("q:5/day UTC")]), ...change };
    expect(decodeRule(item as Item, "l_", "q")).toBe(kind);
  });

  test("a session without its length, or with the name of a rate, cannot be enforced", () => {
    const stored = encodeLimits([Limit.parse("q:5/session:5hour")]);
    const item = { PK: "p", SK: "s", ...stored } as Item;
    expect(decodeRule({ ...item, w_q_rsa: null }, "w_", "q")).toBe("session quota");
    expect(decodeRule({ ...item, l_q_cp: 5 }, "w_", "q")).toBe("session quota");
    expect(decodeRule({ ...item, w_q_sched: "1s500" }, "w_", "q")).toBe("schedule");
  });
});
