import { readFileSync } from "node:fs";
import { runTrace } from "@zae-limiter/test-support/llm/reservation-trace.ts";
import { expect, test } from "vitest";

const DOCUMENT = new URL("../../../../../docs/guide/llm.md", import.meta.url);

test("learned estimates waste at most a fifth of what max_tokens does, as docs/guide/llm.md says", async () => {
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const rows: string[] = [];
  const wasted: number[] = [];
  for (const reserve of ["max", "learned", 0] as const) {
    const result = await runTrace(reserve);
    wasted.push(result.wasted);
    const name = reserve === 0 ? "0" : `'${reserve}'`;
    const shares = [result.refused, result.wasted].map(percent).join(" | ");
    rows.push(`| \`${name}\` | ${shares} | ${Math.max(0, result.debt)} |`);
  }
  const [max = 0, learned = 0] = wasted;
  expect(max).toBeGreaterThan(0.05);
  expect(learned).toBeLessThanOrEqual(max / 5);
  const document = readFileSync(DOCUMENT, "utf8");
  expect(rows.filter((row) => !document.includes(row))).toEqual([]);
});
