/** The code in README.md and in the guide compiles, runs, and prints what its comments say. */

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
/** Each page with the number of blocks that it has at least. */
const PAGES: readonly [string, number][] = [
  ["README.md", 3],
  ["docs/getting-started/quick-start.md", 2],
  ["docs/guide/acquiring.md", 3],
  ["docs/guide/entities.md", 3],
  ["docs/guide/hierarchy.md", 1],
  ["docs/guide/leases.md", 2],
  ["docs/guide/limits.md", 5],
  ["docs/guide/namespaces.md", 1],
  ["docs/guide/outages.md", 1],
  ["docs/guide/quotas.md", 4],
  ["docs/guide/concurrency.md", 2],
  ["docs/guide/switches.md", 3],
  ["docs/guide/token-bucket.md", 1],
  ["docs/guide/waiting.md", 1],
];
const FENCE_PATTERN = /^```ts\n([\s\S]*?)\n```$/gm;
const IMPORT_PATTERN = /import (?:type )?\{([^}]*)\} from 'zae-limiter'/g;

const workshop = new Workshop(ROOT, new Map([["zae-limiter", ENTRY]]));
afterAll(() => workshop.close());

const exported = new Set(publicSymbols(readSources(ROOT), ENTRY).map(({ name }) => name));
const numbers = new Map<Example, number>();

function blocksOf(path: string): Example[] {
  const text = readFileSync(join(ROOT, path), "utf8");
  return [...text.matchAll(FENCE_PATTERN)].map(({ index, 1: code = "" }) => {
    const block = { owner: path, path, line: lineAt(text, index) + 1, code, runs: true };
    numbers.set(block, numbers.size);
    return block;
  });
}

/** Returns the names that a block imports although the package does not export them yet. */
function awaited({ code }: Example): string[] {
  return [...code.matchAll(IMPORT_PATTERN)]
    .flatMap(([, names = ""]) => names.split(","))
    .map((name) => name.trim().replace(/^type\s+/, ""))
    .filter((name) => name !== "" && !exported.has(name));
}

const pages = PAGES.map(([path, atLeast]) => ({ path, atLeast, blocks: blocksOf(path) }));

test("the code of all pages compiles", { timeout: 60_000 }, () => {
  const complete = pages.flatMap(({ blocks }) => blocks).filter((b) => awaited(b).length === 0);
  expect(workshop.typeErrors(complete)).toEqual([]);
});

describe.each(pages)("the code in $path", ({ atLeast, blocks }) => {
  test("the code of the document is found", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(atLeast);
  });

  for (const block of blocks) {
    const missing = awaited(block);
    const where = `line ${block.line}`;
    if (missing.length > 0) {
      test.skip(`${where}: ${missing.join(", ")} is not exported yet`, () => undefined);
      continue;
    }
    test(`${where} runs and prints what it says`, async () => {
      const printed = await workshop.run(block, numbers.get(block) as number);
      for (const { line, text, expected } of printed) {
        expect({ line, printed: text.join("\n") }).toEqual({ line, printed: expected });
      }
    });
  }
});
