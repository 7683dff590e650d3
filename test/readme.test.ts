/** The code in README.md compiles, runs, and prints what its comments say. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { lineAt, readSources } from "./architecture/source.ts";
import type { Example } from "./examples/extract.ts";
import { publicSymbols } from "./examples/public-symbols.ts";
import { Workshop } from "./examples/workshop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ENTRY = "src/index.ts";
const PATH = "README.md";
const FENCE_PATTERN = /^```ts\n([\s\S]*?)\n```$/gm;
const IMPORT_PATTERN = /import (?:type )?\{([^}]*)\} from 'zae-limiter'/g;

const workshop = new Workshop(ROOT, new Map([["zae-limiter", ENTRY]]));
afterAll(() => workshop.close());

const exported = new Set(publicSymbols(readSources(ROOT), ENTRY).map(({ name }) => name));
const blocks = blocksOf(readFileSync(join(ROOT, PATH), "utf8"));

function blocksOf(text: string): Example[] {
  return [...text.matchAll(FENCE_PATTERN)].map(({ index, 1: code = "" }) => {
    return { owner: PATH, path: PATH, line: lineAt(text, index) + 1, code, runs: true };
  });
}

/** What a block imports although the package does not export it yet. */
function awaited({ code }: Example): string[] {
  return [...code.matchAll(IMPORT_PATTERN)]
    .flatMap(([, names = ""]) => names.split(","))
    .map((name) => name.trim().replace(/^type\s+/, ""))
    .filter((name) => name !== "" && !exported.has(name));
}

describe("the code in the README", () => {
  const complete = blocks.filter((block) => awaited(block).length === 0);

  test("is found", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(4);
    expect(complete.length).toBeGreaterThan(0);
  });

  test("compiles", { timeout: 60_000 }, () => {
    expect(workshop.typeErrors(complete)).toEqual([]);
  });

  for (const [number, block] of blocks.entries()) {
    const missing = awaited(block);
    const where = `line ${block.line}`;
    if (missing.length > 0) {
      test.skip(`${where}: ${missing.join(", ")} is not exported yet`, () => undefined);
      continue;
    }
    test(`${where} runs and prints what it says`, async () => {
      const printed = await workshop.run(block, number);
      for (const { line, text, expected } of printed) {
        expect({ line, printed: text.join("\n") }).toEqual({ line, printed: expected });
      }
    });
  }
});
