/** Every `@example` of a public symbol compiles, runs, and prints what its comments say. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { entryFiles, type PackageEntries } from "./architecture/graph.ts";
import { readSources, toSource } from "./architecture/source.ts";
import { type Example, examplesOf } from "./examples/extract.ts";
import { needsExample, publicSymbols } from "./examples/public-symbols.ts";
import { type Printed, Workshop } from "./examples/workshop.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MANIFEST = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as PackageEntries & {
  name: string;
};

/** `zae-limiter`, `zae-limiter/testing`, …: what users import, and the file behind it. */
const ENTRIES = new Map(
  Object.entries(MANIFEST.exports).flatMap(([subpath, target]) =>
    entryFiles({ exports: { [subpath]: target } }).map(
      (path) => [join(MANIFEST.name, subpath), path] as const,
    ),
  ),
);

const files = readSources(ROOT);
const symbols = [...ENTRIES.values()].flatMap((entry) => publicSymbols(files, entry));
const publicPlaces = new Set(symbols.map(({ path, name }) => `${path} ${name}`));
const examples = files
  .flatMap(examplesOf)
  .filter(({ path, owner }) => publicPlaces.has(`${path} ${owner}`));

const workshop = new Workshop(ROOT, ENTRIES);
const home = process.cwd();

beforeAll(() => {
  // Examples open stores by relative paths, and by default the one the environment names.
  process.chdir(workshop.folder);
  vi.stubEnv("ZAEL_URL", undefined);
  vi.stubEnv("ZAEL_NAMESPACE", undefined);
  typeErrors = workshop.typeErrors([...examples, WRONG]);
});

afterAll(() => {
  vi.unstubAllEnvs();
  process.chdir(home);
  workshop.close();
});

/** The lines that printed something else than their comments say. */
function surprises(printed: readonly Printed[]): string[] {
  return printed
    .filter(({ text, expected }) => expected !== undefined && text.join("\n") !== expected)
    .map(
      ({ line, text, expected }) => `line ${line} prints "${text.join("\n")}", not "${expected}"`,
    );
}

function commented(...lines: string[]): string {
  const comment = ["/**", " * @example", ...lines.map((line) => ` * ${line}`), " */"];
  return [...comment, "export class Shown {}"].join("\n");
}

function only(text: string): Example {
  const [example] = examplesOf(toSource("src/shown.ts", text));
  if (example === undefined) throw new Error("there is no example");
  return example;
}

/** The compiler sees it with all others: to start it takes longer than to check an example. */
const WRONG = only(
  commented("```ts", "import { Limit } from 'zae-limiter';", "Limit.parse(5);", "```"),
);
let typeErrors: readonly string[];
const isOfWrong = (error: string) => error.startsWith("src/shown.ts:");

describe("the examples of public symbols", () => {
  test("every public class, function and constant has an example", () => {
    const shown = new Set(examples.map(({ path, owner }) => `${path} ${owner}`));
    const missing = symbols
      .filter((symbol) => needsExample(symbol, symbols))
      .filter(({ path, name }) => !shown.has(`${path} ${name}`))
      .map(({ path, name }) => `${path} ${name}`);
    expect(missing).toEqual([]);
  });

  test(`all ${examples.length} examples compile together`, () => {
    expect(typeErrors.filter((error) => !isOfWrong(error))).toEqual([]);
  });

  const runnable = examples.filter(({ runs }) => runs);
  for (const [number, example] of runnable.entries()) {
    test(`${example.owner} (${example.path}:${example.line}) runs and prints what it says`, async () => {
      expect(surprises(await workshop.run(example, number))).toEqual([]);
    });
  }
});

describe("the checker", () => {
  test("an example is found with its owner and its line", () => {
    expect(only(commented("```ts", "let x = 1;", "", "x += 1;", "```"))).toEqual({
      owner: "Shown",
      path: "src/shown.ts",
      line: 4,
      code: "let x = 1;\n\nx += 1;",
      runs: true,
    });
    const member = `export class Outer {\n  /**\n   * @example\n   * \`\`\`ts no-run: needs a table\n   * go();\n   * \`\`\`\n   */\n  go() {}\n}\nexport class Next {}`;
    expect(only(member)).toMatchObject({ owner: "Outer", line: 5, code: "go();", runs: false });
    expect(() => only(commented("```ts skip", "go();", "```"))).toThrow(/no-run: why/);
  });

  test("an example that does not compile is reported with its place", () => {
    expect(typeErrors.filter(isOfWrong)).toEqual([
      expect.stringMatching(/^src\/shown\.ts:5: error TS2345/),
    ]);
  });

  test("an example that throws, or prints something else or nothing, is reported", async () => {
    const throwing = only(
      commented("```ts", "import { Limit } from 'zae-limiter';", "Limit.parse('no');", "```"),
    );
    await expect(workshop.run(throwing, 9001)).rejects.toThrow("Invalid limit");
    const surprising = only(
      commented(
        "```ts",
        "console.log(1, 'two', { three: 3 }); // 1 two { three: 3 }",
        "console.log('yes'); // no",
        "if (Date.now() < 0) console.log('never'); // never",
        "console.log('whatever');",
        "```",
      ),
    );
    expect(surprises(await workshop.run(surprising, 9002))).toEqual([
      'line 5 prints "yes", not "no"',
      'line 6 prints "", not "never"',
    ]);
  });

  test("what users call and the errors they handle need examples", () => {
    const from = [
      toSource(
        "src/all.ts",
        "export class Base extends Error {}\nexport class ValidationError extends Base {}\n" +
          "export class Odd extends Base {}\nexport function go() {}\nexport const MAX = 1;\n" +
          "export interface Shape {}\nexport type Name = string;\nexport class Box<T> {}\n",
      ),
      toSource(
        "src/index.ts",
        'export { Base, ValidationError, Odd, go, type Name, MAX, Box } from "./all.ts";\n' +
          'export type { Shape } from "./all.ts";\n',
      ),
    ];
    const found = publicSymbols(from, "src/index.ts");
    expect(found.map(({ name }) => name)).toHaveLength(8);
    const needed = found.filter((symbol) => needsExample(symbol, found));
    expect(needed.map(({ name }) => name)).toEqual(["ValidationError", "go", "MAX", "Box"]);
    const wrong = [toSource("src/index.ts", 'export { gone } from "./all.ts";')];
    expect(() => publicSymbols([...wrong, ...from.slice(0, 1)], "src/index.ts")).toThrow(/"gone"/);
  });
});
