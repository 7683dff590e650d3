import {
  decodeUsage,
  usageChange,
  usageKey,
  wholeTokens,
} from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { describe, expect, test } from "vitest";

const SUBJECT = { namespaceId: "ns", entityId: "key-1", resource: "gpt-4" };
const AT = Date.UTC(2026, 10, 18, 21, 30);

function stored(limitName: string): Item {
  const amountsMilli: [string, number][] = [[limitName, 5000]];
  const { set, add } = usageChange(SUBJECT, "hourly", AT, { amountsMilli, events: 1 }, 90);
  return { ...usageKey(SUBJECT, "hourly", AT - (AT % 3_600_000)), ...set, ...add };
}

describe("a usage snapshot", () => {
  test.each(["tpm", "ttl", "PK", "GSI2PK", "LSI1SK", "window"])(
    "a usage snapshot counts a limit that is called %s, and keeps its keys",
    (limitName) => {
      const item = stored(limitName);
      expect(item.GSI2PK).toBe("ns/RESOURCE#gpt-4");
      expect(decodeUsage(item)?.counters).toEqual({ [limitName]: 5 });
    },
  );

  test("a usage snapshot under the key of another one is none", () => {
    const item = stored("tpm");
    const { PK, SK } = usageKey(SUBJECT, "hourly", AT - (AT % 3_600_000) - 3_600_000);
    expect(decodeUsage({ ...item, PK, SK })).toBeUndefined();
    expect(decodeUsage({ ...item, PK: "ns/ENTITY#key-2" })).toBeUndefined();
  });

  test("a usage snapshot cuts off parts of tokens, in both directions", () => {
    expect([1.5, 0.999, 2, -1.5].map(wholeTokens)).toEqual([1, 0, 2, -1]);
  });
});
