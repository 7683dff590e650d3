import { finiteOrNull, jsonOf } from "@zae-limiter/cli/terminal/json.ts";
import { expect, it } from "vitest";

it("fields are named as the shape does, in its order, and others are left out", () => {
  const shape = { entity_id: "text", p50_ms: "number", total: "object" } as const;
  const fields = { total: { rpm: 1 }, p50Ms: 2, entityId: "key-1", secret: "x" };
  expect(Object.entries(jsonOf(shape, fields))).toEqual([
    ["entity_id", "key-1"],
    ["p50_ms", 2],
    ["total", { rpm: 1 }],
  ]);
});

it("a missing field becomes null, unless the shape says that it may be missing", () => {
  const shape = { parent_id: "text | null", "used_tokens?": "number" } as const;
  expect(jsonOf(shape, {})).toEqual({ parent_id: null });
  expect(jsonOf(shape, { usedTokens: 0 })).toEqual({ parent_id: null, used_tokens: 0 });
});

it("a number without end becomes null, and every other stays", () => {
  expect([finiteOrNull(Number.POSITIVE_INFINITY), finiteOrNull(0)]).toEqual([null, 0]);
});
