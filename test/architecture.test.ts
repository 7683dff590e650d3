/** Keeps the arrows of the design true, and its rules about time, randomness and words. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  cycleViolations,
  deadFileViolations,
  eagerPackageViolations,
  entryFiles,
  type PackageEntries,
} from "./architecture/graph.ts";
import { AWAITED, PLACES, PLAIN_FOLDERS, QUOTES } from "./architecture/house-rules.ts";
import { checkerViolations, layerViolations, roomCircles } from "./architecture/layers.ts";
import { placeViolations, staleExceptions } from "./architecture/places.ts";
import { commentViolations } from "./architecture/plain-comments.ts";
import {
  readDocuments,
  readTexts,
  staleQuotes,
  wordViolations,
} from "./architecture/plain-words.ts";
import { untestedPureFiles } from "./architecture/pure-files.ts";
import { readRoomArrows, readSources, report, toSource } from "./architecture/source.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MANIFEST = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as PackageEntries;

/** Entry points of `scripts/bundle-lambda.mjs`. */
const BUNDLES = [
  "packages/aws/src/aggregator/lambda-entry.ts",
  "packages/aws/src/limits-resource/lambda-entry.ts",
];

describe("this project", () => {
  const files = readSources(ROOT);
  const rooms = readRoomArrows(ROOT);
  const shipped = files.filter(({ path }) => !path.startsWith("packages/simulator/"));

  test("the sources are read without misunderstanding: no quote is left where only code should be", () => {
    expect(files.filter(({ words }) => /["'`]/.test(words)).map(({ path }) => path)).toEqual([]);
  });

  test("imports of a room and of a layer point downwards", () => {
    expect(report(layerViolations(files, rooms))).toBe("");
    expect(report(roomCircles(rooms))).toBe("");
  });

  test("no file imports itself through others", () => {
    expect(report(cycleViolations(files))).toBe("");
  });

  test("every file is reached from an entry point of the package", () => {
    const entries = [...entryFiles(MANIFEST), ...BUNDLES];
    expect(report(deadFileViolations(shipped, entries, AWAITED))).toBe("");
  });

  test("importing the package loads no driver and no SDK", () => {
    expect(report(eagerPackageViolations(files, "src/index.ts"))).toBe("");
  });

  test("time, randomness, environment and unwanted words stay in their places", () => {
    expect(report(placeViolations(files, PLACES))).toBe("");
  });

  test("the checkers of the simulator use nothing that they check", () => {
    expect(report(checkerViolations(files))).toBe("");
  });

  test("every file of buckets without I/O has a unit test of its own name", () => {
    const hasTest = (path: string) => existsSync(join(ROOT, path));
    expect(report(untestedPureFiles(files, "packages/limiter/src/buckets/", hasTest))).toBe("");
  });

  test("comments, messages and titles use plain words and comments fit 100 columns", () => {
    const tests = [...rooms.keys()].map((room) => `packages/${room}/test`);
    const texts = ["test", ...tests].flatMap((folder) => readTexts(ROOT, folder, ".ts"));
    const all = [...files, ...texts];
    expect(report(wordViolations(all, QUOTES))).toBe("");
    expect(staleQuotes(all, QUOTES)).toEqual([]);
  });

  test("doc comments begin with a verb or a thing, and comments use technical verbs", () => {
    const folders = ["bench", "examples", "packages", "scripts", "src", "test"];
    const texts = folders.flatMap((folder) =>
      [".ts", ".tsx", ".mjs", ".js"].flatMap((ending) => readTexts(ROOT, folder, ending)),
    );
    const plain = texts.filter(({ path }) => PLAIN_FOLDERS.some((at) => path.startsWith(at)));
    expect(report(commentViolations(plain))).toBe("");
  });

  test("documents use plain words", () => {
    const documents = readDocuments(ROOT);
    expect(documents.length).toBeGreaterThan(80);
    expect(report(wordViolations(documents, QUOTES))).toBe("");
  });

  test("no exception outlives its reason", () => {
    expect(report(staleExceptions(files, PLACES))).toBe("");
  });
});

/** A project that keeps every rule, to plant one violation at a time in. */
const LEGAL = {
  "packages/limiter/package.json": "{}",
  "packages/limiter/src/core/sum.ts": "export const sum = (a: number, b: number) => a + b;\n",
  "packages/limiter/src/base/time.ts": "export const now = () => Date.now();\n",
  "packages/limiter/src/storage/port.ts": 'export type { Late } from "./late.ts";\n',
  "packages/limiter/src/storage/late.ts": "export type Late = string;\n",
  "packages/limiter/src/storage/memory/store.ts":
    'import { now } from "../../base/time.ts";\n' +
    'import { sum } from "../../core/sum.ts";\nsum(0, now());\n',
  "packages/limiter/src/storage/sqlite/store.ts": 'export const load = () => import("libsql");\n',
  "packages/limiter/src/records/keys.ts":
    'import type { Late } from "../storage/port.ts";\nexport type Key = Late;\n',
  "packages/limiter/src/repository/open.ts":
    'import type { Key } from "../records/keys.ts";\n' +
    'export const open = (_: Key) => import("../storage/memory/store.ts");\n' +
    'export const other = () => import("../storage/sqlite/store.ts");\n',
  "packages/limiter/src/index.ts": 'export { open } from "./repository/open.ts";\n',
  "packages/simulator/package.json": '{ "dependencies": { "@zae-limiter/limiter": "*" } }',
  "packages/simulator/src/checkers/rule.ts":
    'import type { Late } from "@zae-limiter/limiter/storage/port.ts";\n',
  "packages/aws/package.json": '{ "dependencies": { "@zae-limiter/limiter": "*" } }',
  "packages/aws/src/stack.ts": 'import "@zae-limiter/limiter/index.ts";\n',
  "packages/cli/package.json":
    '{ "dependencies": { "@zae-limiter/limiter": "*", "@zae-limiter/aws": "*", "left-pad": "1" } }',
  "packages/cli/src/main.ts":
    'import "@zae-limiter/aws/stack.ts";\n' +
    'import { open } from "@zae-limiter/limiter/index.ts";\nopen(process.env.NAME ?? "any");\n',
  "src/index.ts": 'export { open } from "@zae-limiter/limiter/index.ts";\n',
};
const ENTRIES = ["src/index.ts", "packages/cli/src/main.ts"];

function violationsOf(changes: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "architecture-"));
  try {
    for (const [path, text] of Object.entries({ ...LEGAL, ...changes })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const files = readSources(root);
    const rooms = readRoomArrows(root);
    const shipped = files.filter(({ path }) => !path.startsWith("packages/simulator/"));
    return report([
      ...layerViolations(files, rooms),
      ...roomCircles(rooms),
      ...checkerViolations(files),
      ...cycleViolations(files),
      ...deadFileViolations(shipped, ENTRIES, []),
      ...eagerPackageViolations(files, "src/index.ts"),
      ...placeViolations(files, PLACES),
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** Returns a file with more text at its end; it stays reachable. */
function extended(path: keyof typeof LEGAL, more: string): Record<string, string> {
  return { [path]: LEGAL[path] + more };
}

describe("the checker", () => {
  test("a project that keeps the rules passes the checker", () => {
    expect(violationsOf({})).toBe("");
  });

  test.each<[string, Record<string, string>, RegExp]>([
    [
      "core imports upwards",
      extended(
        "packages/limiter/src/core/sum.ts",
        'import type { now } from "../storage/port.ts";\n',
      ),
      /^packages\/limiter\/src\/core\/sum\.ts:2 core may import nothing else, but imports packages\/limiter\/src\/storage\/port\.ts$/,
    ],
    [
      "core depends on Node",
      extended("packages/limiter/src/core/sum.ts", 'import "node:fs";\n'),
      /^packages\/limiter\/src\/core\/sum\.ts:2 core must not depend on a package, but imports "node:fs"$/,
    ],
    [
      "an adapter imports another",
      extended("packages/limiter/src/storage/memory/store.ts", 'import "../sqlite/store.ts";\n'),
      /^packages\/limiter\/src\/storage\/memory\/store\.ts:4 storage\/memory may import .* packages\/limiter\/src\/storage\/sqlite\/store/,
    ],
    [
      "the port imports an adapter, even later",
      extended(
        "packages/limiter/src/storage/port.ts",
        'export const open = () => import("./memory/store.ts");\n',
      ),
      /^packages\/limiter\/src\/storage\/port\.ts:2 storage may import base, core, domain, but imports .*memory/,
    ],
    [
      "records know an adapter",
      extended(
        "packages/limiter/src/records/keys.ts",
        'export * as m from "../storage/memory/store.ts";\n',
      ),
      /^packages\/limiter\/src\/records\/keys\.ts:3 records may import base, core, domain, storage, but imports .*memory/,
    ],
    [
      "a folder that is no layer",
      {
        "packages/limiter/src/utils/all.ts": "",
        ...extended("packages/limiter/src/index.ts", 'import "./utils/all.ts";\n'),
      },
      /packages\/limiter\/src\/utils\/all\.ts:1 "utils" is not a layer of the design/,
    ],
    [
      "one edge imports another",
      {
        "packages/limiter/src/http/hono.ts": 'import "../llm/format.ts";\n',
        "packages/limiter/src/llm/format.ts": "",
        ...extended("packages/cli/src/main.ts", 'import "@zae-limiter/limiter/http/hono.ts";\n'),
      },
      /^packages\/limiter\/src\/http\/hono\.ts:1 http may import .*, but imports .*llm\/format\.ts$/,
    ],
    [
      "a room that imports one its manifest does not state",
      extended("packages/aws/src/stack.ts", 'import "@zae-limiter/cli/main.ts";\n'),
      /^packages\/aws\/src\/stack\.ts:2 aws may import limiter, but imports packages\/cli\/src\/main\.ts/,
    ],
    [
      "a room that imports the package",
      extended("packages/aws/src/stack.ts", 'import type { open } from "../../../src/index.ts";\n'),
      /^packages\/aws\/src\/stack\.ts:2 aws may import limiter, but imports src\/index\.ts$/,
    ],
    [
      "rooms in a circle",
      { "packages/limiter/package.json": '{ "dependencies": { "@zae-limiter/aws": "*" } }' },
      /^packages\/aws\/package\.json:1 rooms must not name each other in a circle\n.*limiter/,
    ],
    [
      "a checker that uses what it checks",
      extended(
        "packages/simulator/src/checkers/rule.ts",
        'import "@zae-limiter/limiter/core/sum.ts";\n',
      ),
      /^packages\/simulator\/.*rule\.ts:2 a checker must not use .*, but imports .*core\/sum\.ts$/,
    ],
    [
      "a cycle",
      {
        "packages/limiter/src/core/a.ts": 'import "./b.ts";\n',
        "packages/limiter/src/core/b.ts": '\nexport { x } from "./a.ts";\n',
        ...extended("packages/limiter/src/core/sum.ts", 'import "./a.ts";\n'),
      },
      /^packages\/limiter\/src\/core\/b\.ts:2 closes a cycle of imports: packages\/limiter\/src\/core\/a\.ts -> packages\/limiter\/src\/core\/b\.ts -> /,
    ],
    [
      "a dead file",
      { "packages/limiter/src/core/dead.ts": "" },
      /^packages\/limiter\/src\/core\/dead\.ts:1 no entry point of the package leads here$/,
    ],
    [
      "an SDK that is loaded at once",
      extended(
        "packages/limiter/src/repository/open.ts",
        'import { x } from "@aws-sdk/client-dynamodb";\n',
      ),
      /^packages\/limiter\/src\/repository\/open\.ts:4 src\/index\.ts must not load "@aws-sdk\/client-dynamodb"/,
    ],
    [
      "the wall clock",
      extended("packages/limiter/src/core/sum.ts", "\nDate.now();\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:3 time is an argument.*: Date\.now$/,
    ],
    [
      "a date of now",
      extended("packages/limiter/src/core/sum.ts", "new Date();\nnew Date(5);\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 time is an argument.*: new Date\(\)$/,
    ],
    [
      "a stopwatch",
      extended("packages/limiter/src/core/sum.ts", "performance.now();\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 time is an argument.*: performance\.now$/,
    ],
    [
      "a timer, under another name",
      extended("src/index.ts", 'import { setTimeout as nap } from "node:timers/promises";\n'),
      /^src\/index\.ts:2 waiting is for the timer.*: setTimeout$/,
    ],
    [
      "randomness",
      extended("packages/limiter/src/core/sum.ts", "Math.random();\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 randomness is an argument.*: Math\.random$/,
    ],
    [
      "randomness from Node",
      extended("src/index.ts", "import { randomUUID } from 'node:crypto';\n"),
      /^src\/index\.ts:2 randomness is an argument.*: 'node:crypto'$/,
    ],
    [
      "the environment",
      extended("packages/limiter/src/repository/open.ts", "process.env.HOME;\n"),
      /^packages\/limiter\/src\/repository\/open\.ts:4 the environment is read in one place: process\.env$/,
    ],
    [
      "a question for the kind of a store",
      extended("packages/cli/src/main.ts", 'location.kind === "memory";\n'),
      /^packages\/cli\/src\/main\.ts:4 ask the list of stores for a trait.*: location\.kind$/,
    ],
    [
      "a question for the kind of a store under another name",
      extended("packages/cli/src/main.ts", 'place.kind !== "sqlite";\n'),
      /^packages\/cli\/src\/main\.ts:4 ask the list of stores .*: kind !== "sqlite"$/,
    ],
    [
      "a location whose kind is taken out",
      extended("packages/cli/src/main.ts", "const { kind } = location;\n"),
      /^packages\/cli\/src\/main\.ts:4 ask the list of stores .*: \{ kind \} = location$/,
    ],
    [
      "a location that is written down by its kind",
      extended("packages/cli/src/main.ts", 'open({ kind: "dynamodb", table: "t" });\n'),
      /^packages\/cli\/src\/main\.ts:4 ask the list of stores .*: kind: "dynamodb"$/,
    ],
    [
      "a question for the class of a store",
      extended("packages/aws/src/stack.ts", "store instanceof DynamoItemStore;\n"),
      /^packages\/aws\/src\/stack\.ts:2 ask the list of stores .*: instanceof DynamoItemStore$/,
    ],
    [
      "a hidden member of a store",
      extended("packages/aws/src/stack.ts", '"scan" in store;\n'),
      /^packages\/aws\/src\/stack\.ts:2 a member of a store is part of its type.*: "scan" in store$/,
    ],
    [
      "everything exported",
      extended("packages/limiter/src/index.ts", 'export * from "./core/sum.ts";\n'),
      /^packages\/limiter\/src\/index\.ts:2 exports are listed by name: export \*$/,
    ],
    [
      "any",
      extended("packages/limiter/src/core/sum.ts", "export const x = {} as any;\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 no any: any$/,
    ],
    [
      "a default export",
      extended("packages/limiter/src/core/sum.ts", "export { sum as default };\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 no default exports: as default$/,
    ],
    [
      "an enum",
      extended("packages/limiter/src/core/sum.ts", "export const enum Side { Left }\n"),
      /^packages\/limiter\/src\/core\/sum\.ts:2 no enums: enum Side$/,
    ],
    [
      "an unfinished place",
      // In two parts, so that a search for such places does not find this one.
      extended("packages/limiter/src/core/sum.ts", `// ${"TO"}${"DO"}: later\n`),
      /^packages\/limiter\/src\/core\/sum\.ts:2 nothing left to do/,
    ],
    [
      "a file that is too long",
      extended("packages/limiter/src/core/sum.ts", "sum(1, 2);\n".repeat(400)),
      /^packages\/limiter\/src\/core\/sum\.ts:401 has 401 lines, at most 400$/,
    ],
  ])("the checker of the architecture finds %s", (_, changes, expected) => {
    expect(violationsOf(changes)).toMatch(expected);
  });

  test("an entry that is not there, and an exception or a wait that is over, are found", () => {
    const files = [toSource("src/index.ts", "")];
    expect(report(deadFileViolations(files, ENTRIES, ["src/index.ts"]))).toBe(
      "packages/cli/src/main.ts:1 package.json names it, but it is not there\n" +
        "src/index.ts:1 is not awaited any more: take it off the list",
    );
    expect(report(staleExceptions(files, PLACES))).toContain(
      "packages/limiter/src/base/time.ts:1 needs no exception any more: time is an argument",
    );
  });

  test("the checker knows the entry points from package.json", () => {
    const manifest = {
      exports: {
        ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
        "./hono": "./dist/limiter/http/hono.js",
        "./package.json": "./package.json",
      },
      bin: { "zae-limiter": "dist/cli/main.js" },
    };
    expect(entryFiles(manifest)).toEqual([
      "src/index.ts",
      "packages/limiter/src/http/hono.ts",
      "packages/cli/src/main.ts",
    ]);
  });

  test("the checker is not misled by comments, strings, templates and regular expressions", () => {
    const text = [
      '/** import { x } from "./nowhere.ts"; Date.now() any */',
      "const a = \"Date.now() // any\"; // import 'x'",
      "const b = `Date.now() $".concat("{`any $", "{'any'} }`} any`;"),
      'const c = /["`]Date.now()/.test(a), any_ = 4 / 2 / 1;',
      "const d = `$".concat("{{ e: Math.random() }}`;"),
    ].join("\n");
    const { words } = toSource("src/core/x.ts", text);
    expect(words).toHaveLength(text.length);
    expect(words).not.toMatch(/Date\.now|\bany\b|import/);
    expect(words).toContain("any_ = 4 / 2 / 1;");
    expect(words).toContain("Math.random()");
  });
});

describe("the rule of tests for pure files", () => {
  const found = (text: string, tests: readonly string[] = []) =>
    report(
      untestedPureFiles(
        [toSource("packages/limiter/src/buckets/a.ts", text)],
        "packages/limiter/src/buckets/",
        (path) => tests.includes(path),
      ),
    );

  test("a file with values and without promises needs a test of its name", () => {
    const text = "export function one(): number {\n  return 1; // await\n}\n";
    expect(found(text)).toBe(
      "packages/limiter/src/buckets/a.ts:1 is pure and has no test packages/limiter/test/unit/buckets/a.test.ts",
    );
    expect(found(text, ["packages/limiter/test/unit/buckets/a.test.ts"])).toBe("");
  });

  test.each([
    ["only types", "export interface One {\n  readonly one: number;\n}\n"],
    ["promises", "export async function one() {\n  await two();\n}\n"],
  ])("a file with %s needs none", (_, text) => {
    expect(found(text)).toBe("");
  });
});

describe("the rule of plain words", () => {
  const violations = (text: string, part = "nothing quoted") =>
    report(wordViolations([toSource("src/a.ts", text)], [["src/a.ts", part]]));

  test.each(["// Nobody waits.", "/** Whoever asks. */", '"say it anew"', " * waits in vain"])(
    "an unwanted word is reported with its line: %s",
    (line) => {
      expect(violations(`const a = 1;\n${line}\n`)).toMatch(/^src\/a\.ts:2 says /);
      expect(violations(`const a = 1;\n${line}\n`, line)).toBe("");
    },
  );

  test("a word that only contains an unwanted one is allowed", () => {
    expect(violations("// besides, the whole amendment\n")).toBe("");
  });

  test("a comment line past 100 columns is reported, and a line of code is not", () => {
    expect(violations(`// ${"x".repeat(97)}\n`)).toBe("");
    expect(violations(`// ${"x".repeat(98)}\n`)).toBe(
      "src/a.ts:1 has a comment of 101 columns, at most 100",
    );
    expect(violations(`const a = "${"x".repeat(98)}";\n`)).toBe("");
  });
});

describe("the rule of plain comments", () => {
  const violations = (text: string) => report(commentViolations([{ path: "src/a.ts", text }]));

  test.each(["What", "Of", "By", "The same", "Where", "Those"])(
    "a doc comment that begins with %s is reported",
    (word) => {
      expect(violations(`\n/** ${word} is here. */\nconst a = 1;\n`)).toBe(
        `src/a.ts:2 has a doc comment that begins with ${word}`,
      );
      expect(violations(`/** Something of ${word}. */\nconst a = 1;\n`)).toBe("");
    },
  );

  test.each([
    "export async function a(): Promise<void> {",
    "  static #a<T>(b: T): void {",
    "  async *a() {",
    "const a = async (b: number): Promise<number> => b;",
  ])("the doc comment of a function begins with a verb: %s", (line) => {
    expect(violations(`/** The sum. */\n${line}\n`)).toBe(
      'src/a.ts:1 has a doc comment of a function that begins with "The", not a verb',
    );
    expect(violations(`/**\n * Returns the sum.\n */\n${line}\n`)).toBe("");
    expect(violations(`/** Whether it is there. */\n${line}\n`)).toBe("");
  });

  test.each([
    "  get a(): number {",
    "const a = 1;",
    "export class A {",
    "  readonly a: () => void;",
  ])("the doc comment of another thing may begin with a noun: %s", (line) => {
    expect(violations(`/** The sum. */\n${line}\n`)).toBe("");
  });

  test.each(["A client is told.", "It looks at all.", "It runs so many times."])(
    "a private verb in a comment is reported: %s",
    (text) => {
      expect(violations(`const a = 1; // ${text}\n`)).toMatch(/^src\/a\.ts:1 says /);
      expect(violations(`/* ${text} */\n`)).toMatch(/^src\/a\.ts:1 says /);
    },
  );

  test("a private verb in a string, a title or an address is allowed, and so is looking up", () => {
    expect(violations('say("it is told", "https://told.example"); // looks up a\n')).toBe("");
  });
});
