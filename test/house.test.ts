/** The figures of `npm run house`, on small sources; and the one rule of it that must hold. */

import { expect, test } from "vitest";
import { duplicatedRuns } from "../scripts/house/duplicates.mjs";
import { crowdedFolders, roomRows, smallFiles } from "../scripts/house/figures.mjs";
import { importersOf, readSources, toSource } from "../scripts/house/sources.mjs";

const AT = "packages/limiter/src";
const RUN = [
  "const a = 1;",
  "const b = 2;",
  "const c = 3;",
  "const d = 4;",
  "use(a, b);",
  "use(c, d);",
];

test("no folder of the sources has more than 25 files side by side", () => {
  const sources = readSources();
  expect(sources.length).toBeGreaterThan(500);
  expect(crowdedFolders(sources)).toEqual([]);
});

test("a folder with 26 files is crowded, and its inner folders count for themselves", () => {
  const files = (folder: string, count: number) =>
    Array.from({ length: count }, (_, at) => toSource(`${AT}/${folder}/${at}.ts`, ""));
  const sources = [...files("records", 26), ...files("records/config", 25)];
  expect(crowdedFolders(sources)).toEqual([{ folder: `${AT}/records`, files: 26 }]);
});

test.each([
  ["import { a } from './a.ts';", ["import"]],
  ['import {\n  a,\n} from "./a.ts";\na();', ["import", "import", "import", "code"]],
  ['export {\n  a,\n} from "./a.ts";', ["import", "import", "import"]],
  ["export { a };\nexport * as b;", ["code", "code"]],
  ["/** One. */\n/*\nTwo.\n*/\n// Three.", Array(5).fill("comment")],
  ["const a = 1; // One.\n\nb();", ["code", "blank", "code"]],
])("the lines of %j are of the kinds %j", (text, kinds) => {
  expect(toSource("src/a.ts", text).kinds).toEqual(kinds);
});

test("rooms have rows, and the limiter one for each of its folders", () => {
  const rows = roomRows([
    toSource(`${AT}/core/bucket.ts`, "a();\nb();\n"),
    toSource(`${AT}/storage/item.ts`, "a();\n"),
    toSource(`${AT}/storage/sqlite/drivers/libsql.ts`, "a();\n"),
    toSource("packages/gateway/src/gateway.ts", "a();\n"),
  ]);
  expect(rows.map(({ room, part, files, lines }) => [room, part, files, lines])).toEqual([
    ["limiter", "", 3, 4],
    ["limiter", "core", 1, 2],
    ["limiter", "storage", 1, 1],
    ["limiter", "storage/sqlite", 1, 1],
    ["gateway", "", 1, 1],
  ]);
});

test("a small file with one importer is found, by a relative name or by that of its room", () => {
  const sources = [
    toSource(`${AT}/core/one.ts`, 'import { two } from "./two.ts";'),
    toSource(`${AT}/core/two.ts`, ""),
    toSource(`${AT}/core/shared.ts`, ""),
    toSource(`${AT}/core/long.ts`, "a();\n".repeat(81)),
    toSource(
      "packages/cli/src/three.ts",
      [
        'import type { one } from "@zae-limiter/limiter/core/one.ts";',
        'const shared = await import("@zae-limiter/limiter/core/shared.ts");',
        'export * from "@zae-limiter/limiter/core/long.ts";',
      ].join("\n"),
    ),
    toSource("packages/cli/src/four.ts", 'import "@zae-limiter/limiter/core/shared.ts";'),
  ];
  const entries = new Set([`${AT}/core/one.ts`]);
  expect(smallFiles(sources, importersOf(sources), entries)).toEqual([
    { path: `${AT}/core/two.ts`, lines: 1, importer: `${AT}/core/one.ts` },
  ]);
});

test("equal lines are found once, whatever their white space, comments and punctuation are", () => {
  const one = toSource("src/one.ts", ["first();", ...RUN, "last();"].join("\n"));
  const other = toSource(
    "src/other.ts",
    ["{", ...RUN.map((line) => `  ${line}\n  // No.\n}`)].join("\n"),
  );
  expect(duplicatedRuns([one, other])).toEqual([
    { lines: 6, places: ["src/one.ts:2", "src/other.ts:2"] },
  ]);
  expect(duplicatedRuns([one, toSource("src/short.ts", RUN.slice(1).join("\n"))])).toEqual([]);
});

test("a list of equal lines is no copy of itself, but two copies in one file are found", () => {
  expect(duplicatedRuns([toSource("src/list.ts", "add(1);\n".repeat(11))])).toEqual([]);
  const twice = toSource("src/twice.ts", [...RUN, "between();", ...RUN].join("\n"));
  expect(duplicatedRuns([twice])).toEqual([
    { lines: 6, places: ["src/twice.ts:1", "src/twice.ts:8"] },
  ]);
});
