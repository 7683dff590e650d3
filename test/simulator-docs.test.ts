/** The code in docs/guide/testing.md runs, and prints what its comments say. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { lineAt } from "./architecture/source.ts";
import { Workshop } from "./examples/workshop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PATH = "docs/guide/testing.md";
const FENCE_PATTERN = /^```ts\n([\s\S]*?)\n```$/gm;

const entries = new Map([
  ["zae-limiter", "src/index.ts"],
  ["zae-limiter/testing", "packages/testing/src/index.ts"],
]);
const workshop = new Workshop(ROOT, entries);
afterAll(() => workshop.close());

const text = readFileSync(join(ROOT, PATH), "utf8");
const blocks = [...text.matchAll(FENCE_PATTERN)].map(({ index, 1: code = "" }) => ({
  owner: PATH,
  path: PATH,
  line: lineAt(text, index) + 1,
  code,
  runs: true,
}));

describe(PATH, () => {
  test("the code of the document compiles", { timeout: 60_000 }, () => {
    expect(blocks.length).toBeGreaterThanOrEqual(2);
    expect(workshop.typeErrors(blocks)).toEqual([]);
  });

  for (const [number, block] of blocks.entries()) {
    test(`line ${block.line} runs and prints what it says`, async () => {
      for (const { line, text: printed, expected } of await workshop.run(block, number)) {
        expect({ line, printed: printed.join("\n") }).toEqual({ line, printed: expected });
      }
    });
  }
});
