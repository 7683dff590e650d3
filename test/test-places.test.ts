/** The places and the titles of tests, so that a newcomer finds them. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const filesOf = (folder: string) =>
  existsSync(join(ROOT, folder))
    ? readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
        .map((path) => path.replaceAll("\\", "/"))
    : [];

/** Each room with its sources and its unit tests, by their paths in it. */
const ROOMS = readdirSync(join(ROOT, "packages")).map((room) => ({
  room,
  sources: filesOf(`packages/${room}/src`),
  unitTests: filesOf(`packages/${room}/test/unit`).filter((path) => path.endsWith(".test.ts")),
}));
const TESTS = ["test", ...ROOMS.map(({ room }) => `packages/${room}/test`)].flatMap((folder) =>
  filesOf(folder).map((path) => read(`${folder}/${path}`)),
);

function read(path: string): { path: string; text: string } {
  return { path, text: readFileSync(join(ROOT, path), "utf8") };
}

test.each(ROOMS)("every folder of unit tests of $room is a folder of its sources", (room) => {
  const isStrange = (path: string) =>
    path.includes("/") && !existsSync(join(ROOT, "packages", room.room, "src", dirname(path)));
  expect(room.unitTests.filter(isStrange)).toEqual([]);
});

test.each(ROOMS)("a unit test of $room that is named after a source is in its folder", (room) => {
  const misplaced = room.unitTests.filter((path) => {
    const name = basename(path).replace(".test.ts", ".ts");
    const [layer = ""] = path.split("/");
    const inLayer = room.sources.filter((file) => file.startsWith(`${layer}/`));
    const named = inLayer.filter((file) => basename(file) === name);
    return named.length > 0 && !named.some((file) => dirname(file) === dirname(path));
  });
  expect(misplaced).toEqual([]);
});

test("every file that is to start first is there, under the name that the order has for it", () => {
  const order = readFileSync(join(ROOT, "test/support/longest-first.ts"), "utf8");
  const paths = [...order.matchAll(/"((?:packages\/\w+\/)?test\/[^"]+)"/g)].map(
    ([, path]) => path as string,
  );
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

/** Texts that no test may contain, and what to do instead. */
const RULES: readonly [string, RegExp, RegExp?][] = [
  [
    "a title ends with the codes of the behaviour and does not begin with them",
    /\b(?:it|test|describe|extra)\(\s*["`](?:A\d{3}|[BHNW]\d{1,2}|op \d+)\b/,
  ],
  ["no test is repeated until it passes", /\bretry: \d/],
  ["a skip names its reason: use itUnless", /\.(?:skipIf|runIf)\(/, /^test\/support\/unless\.ts$/],
];

test.each(RULES)("in every test file %s", (_, pattern, allowed) => {
  const found = TESTS.filter(({ path, text }) => !allowed?.test(path) && pattern.test(text));
  expect(
    found.map(({ path }) => path).filter((path) => path !== "test/test-places.test.ts"),
  ).toEqual([]);
});

/** Files with tests: those of `test`, and the contract suites that the package contains. */
const SUITES = [
  ...TESTS.filter(({ path }) => /\.test(?:-d)?\.ts$/.test(path)),
  ...["item-store-contract", "limiter-contract"]
    .map((suite) => `packages/testing/src/${suite}`)
    .flatMap((folder) => filesOf(folder).map((path) => read(`${folder}/${path}`))),
];

/** A literal title of a test; those of tables are found by the end of the table. */
const TITLE =
  /(?:\b(?:it|test|extra|inTime|whereItFails|property)\(|(?:[\])]|const)\)\()\s*(["`])((?:\\.|(?!\1)[^\\])*)\1\s*,/g;
const WORDS_MIN = 4;

/** A table whose rows are sentences has nothing but a placeholder. */
function isTooShort(title: string): boolean {
  if (/^%s$/.test(title)) return false;
  return title.replace(/\$\{[^}]*\}/g, "x").split(/\s+/).length < WORDS_MIN;
}

/**
 * Words with which a sentence without a subject begins: auxiliaries, conjunctions, and the verbs
 * of this project. A verb that is also the plural of a noun ("limits", "writes") is not here.
 */
const PREDICATE = new RegExp(
  `^(?:${[
    "is|are|was|were|has|have|had|does|do|did|can|cannot|could|may|must|will|would|never|also",
    "and|nor|so|to|that|whose|which|it|its",
    "accepts|adds|adjusts|admits|agrees?|answers|applies|asks|becomes|begins|belongs|brings",
    "carries|charges|claims|comes|commits|consumes|copies|covers|creates|cuts|decides|divides",
    "doubles|draws|enforces|fails|falls|fills|finds|fits|follows|forgets|gets|gives|goes|grants",
    "hands|happens|hears|holds|installs|joins|keeps|lacks|learns|leaves|lets|lists|loads|looks",
    "loses|makes|means|mentions|merges|migrates|moves|needs|notices|overwrites|passes|prints",
    "proves|quotes|reaches|recovers|refers|refills|refunds|refuses|registers|remembers|removes",
    "repeats|replaces|reports|returns|rounds|runs|says|sees|sends|serves|settles|signs|sleeps",
    "starts|stays|stops|survives|takes|tells|throws|touches|turns|waits|wakes|warns|works",
  ].join("|")})\\b(?![-.(])`,
);

const titles = (isWrong: (title: string) => boolean) =>
  SUITES.flatMap(({ path, text }) =>
    [...text.matchAll(TITLE)]
      .filter(({ 2: title = "" }) => isWrong(title))
      .map(({ 2: title }) => `${path}: ${title}`),
  );

test("a title of a test has at least four words, so that it can be read alone in a log", () => {
  expect(titles(isTooShort)).toEqual([]);
});

test("a title of a test has a subject, so that it can be read alone in a log", () => {
  expect(titles((title) => PREDICATE.test(title))).toEqual([]);
});

test.each([
  ["returns 3", true],
  ["refuses %s", true],
  ["a refused parent leaves the child unchanged", false],
  ["%s", false],
  ["the code of $".concat("{path} compiles"), false],
])("the title %j is too short: %s", (title, expected) => {
  expect(isTooShort(title)).toBe(expected);
});

test.each([
  ["refuses a negative amount", true],
  ["is refused at once", true],
  ["nor can those of another limiter", true],
  ["a negative amount is refused", false],
  ["limits of a call are checked", false],
  ["refundWhen refunds by status", false],
])("the title %j lacks a subject: %s", (title, expected) => {
  expect(PREDICATE.test(title)).toBe(expected);
});
