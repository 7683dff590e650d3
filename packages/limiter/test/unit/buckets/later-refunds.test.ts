/** Refunds that are repeated because their outcome is unknown. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { configOf, Table } from "@zae-limiter/test-support/table.ts";
import { expect, test } from "vitest";

const BOTH = configOf(["a:10/day", "b:10/day"]);
const ONE = configOf(["a:10/day"], "resource", 2);

test.each([
  ["arrived", true],
  ["did not arrive", false],
])(
  "a later refund is the same request, whatever happens meanwhile: the first %s",
  async (_, arrived) => {
    const table = new Table();
    const sent: { token: string | undefined; writes: string }[] = [];
    const transact: ItemStore["transact"] = async (writes, options) => {
      sent.push({ token: options?.token, writes: JSON.stringify(writes) });
      if (sent.length > 1) return table.items.transact(writes, options);
      if (arrived) await table.items.transact(writes, options);
      // A limit goes away, and this client sees it go.
      await client.take(ONE, { a: 1000 });
      throw new RateLimiterUnavailable("lost", { reason: "timeout", nothingWritten: false });
    };
    const client = table.client(0, { transact });
    await client.take(BOTH, { a: 5000, b: 5000 });
    await client.refund(BOTH, { a: 5000, b: 5000 });
    await client.store.close();
    const tokens = new Map<string | undefined, string>();
    for (const { token, writes } of sent) {
      expect(tokens.get(token) ?? writes, "one token, one request").toBe(writes);
      tokens.set(token, writes);
    }
    expect(sent.length).toBeGreaterThan(1);
    expect(table.warnings).toEqual([]);
    expect(table.item).toMatchObject({ b_a_tc: 1000 });
    expect(table.item).not.toHaveProperty("b_b_tc");
  },
);
