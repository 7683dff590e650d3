/** The documents keep up with the code: every error has its place, and no link leads nowhere. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { STACK_DEFAULTS } from "@zae-limiter/aws/options/stack-option-table.ts";
import * as api from "@zae-limiter/limiter/index.ts";
import type { OpenOption } from "@zae-limiter/limiter/repository/stores/open-option.ts";
import { SHARED_OPTIONS } from "@zae-limiter/limiter/repository/stores/shared-options.ts";
import { STORES } from "@zae-limiter/limiter/repository/stores/stores.ts";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ROOMS = readdirSync(join(ROOT, "packages"));
const DOCUMENTS = [
  ...readdirSync(ROOT),
  ...filesBelow("docs"),
  ...ROOMS.map((room) => `packages/${room}/README.md`),
  ...filesBelow("examples"),
]
  .filter((path) => path.endsWith(".md"))
  .map((path) => join(ROOT, path));
const TESTS = [
  ...filesBelow("test"),
  ...ROOMS.flatMap((room) => filesBelow(`packages/${room}/test`)),
];
const SOURCES = [
  ...filesBelow("src"),
  ...ROOMS.flatMap((room) => filesBelow(`packages/${room}/src`)),
];
/** Documents about the present code; the others are about its history. */
const MAPS = DOCUMENTS.filter((path) => !path.endsWith("CHANGELOG.md"));
const LINK_PATTERN = /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g;
/** The codes at the end of a title, such as `(A190, B28)` or `(op 18, 19)`. */
const CODES_PATTERN = /\((?:(?:op )?[A-Z]?\d{1,3}(?:, )?)+\)["'`]/g;
const CODE_PATTERN = /\b(?:[A-Z]|op )\d{1,3}\b/g;
/** The suites of the limiter, whose titles end in codes like those of tests. */
const LIMITER_CONTRACT = "packages/testing/src/limiter-contract/";
/** A source file in backticks, with or without its folder. */
const SOURCE_PATTERN = /`([\w./-]+\.tsx?)`/g;
/** A path from the root in backticks, such as `packages/cli/src/frame` or `test/{unit,types}`. */
const PATH_PATTERN = /`((?:packages|src|test|bench|scripts|docs|examples)\/[\w./{},-]*)`/g;
const COLUMNS_MAX = 100;
const RECORD_LINES_MAX = 100;

/** One of each class. Codes belong to instances, so there is no asking the class. */
const versions = { clientVersion: "1", schemaVersion: "2", message: "" };
const SAMPLES: readonly api.ZaeLimiterError[] = [
  new api.ZaeLimiterError(),
  new api.RateLimitError(),
  new api.RateLimitExceeded([
    {
      entityId: "key-1",
      resource: "gpt-4",
      limitName: "rpm",
      limit: api.Limit.perMinute("rpm", 1),
      kind: "rate",
      available: 0,
      requested: 1,
      exceeded: true,
      retryAfterSeconds: 60,
      fullAfterSeconds: 60,
      deficit: 1,
    },
  ]),
  new api.LeaseExpiredError(),
  new api.ResourceDisabled("key-1", "gpt-4", "resource"),
  new api.UnsupportedLimitError({ name: "rpd", kind: "calendar quota" }, "key-1"),
  new api.InfrastructureError(),
  new api.RateLimiterUnavailable(""),
  new api.StackOperationError("stack", "reason"),
  new api.StackAlreadyExistsError("stack"),
  new api.InfrastructureNotFoundError("stack"),
  new api.NamespaceNotFoundError("namespace"),
  new api.NamespaceStateError(""),
  new api.DamagedRecordError("", "", ""),
  new api.SweepIncompleteError(1, undefined),
  new api.CopyRefusedError("same-store", ""),
  new api.EntityError(),
  new api.EntityNotFoundError("key-1"),
  new api.EntityExistsError("key-1"),
  new api.VersionError(),
  new api.VersionMismatchError(versions),
  new api.IncompatibleSchemaError(versions),
  new api.ValidationError("field", 1, ""),
  new api.InvalidIdentifierError("field", 1, ""),
  new api.InvalidNameError("field", 1, ""),
  new api.ModelNotPriced("model-1"),
];

describe("docs/reference/errors.md", () => {
  const page = readFileSync(join(ROOT, "docs/reference/errors.md"), "utf8");
  const exported = Object.entries(api)
    .filter(([, value]) => isErrorClass(value))
    .map(([name]) => name);

  test("the samples here are all exported error classes", () => {
    expect(SAMPLES.map(({ name }) => name).sort()).toEqual(exported.sort());
  });

  test.each(SAMPLES.map(({ name, code }) => [name, code]))(
    "docs/reference/errors.md has a row for %s, %s",
    (name, code) => {
      const cells = page.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
      const rows = cells.filter(([, first]) => first === `\`${name}\``);
      expect(rows).toHaveLength(1);
      const [, , shown, when, advice] = rows[0] ?? [];
      expect(shown).toBe(`\`${code}\``);
      expect(when).not.toBe("");
      expect(advice).not.toBe("");
    },
  );

  test("no two classes share a code", () => {
    expect(new Set(SAMPLES.map(({ code }) => code)).size).toBe(SAMPLES.length);
  });
});

describe("the documents", () => {
  test.each(DOCUMENTS.map((path) => [path.slice(ROOT.length), path]))(
    "%s has no dead link and no line that is too long",
    (_, path) => {
      const text = readFileSync(path, "utf8");
      const links = [...text.matchAll(LINK_PATTERN)];
      expect(links.filter(([, to = "", heading]) => !leadsTo(path, to, heading))).toEqual([]);
      const long = text
        .split("\n")
        .filter((line) => line.length > COLUMNS_MAX && !line.startsWith("|"));
      expect(long).toEqual([]);
    },
  );

  test("every link of the site's home page leads to a page", () => {
    const path = join(ROOT, "site/index.md");
    const text = readFileSync(path, "utf8");
    const links = [...text.matchAll(LINK_PATTERN)];
    expect(links.length).toBeGreaterThan(0);
    expect(links.filter(([, to = "", heading]) => !leadsTo(path, to, heading))).toEqual([]);
    // Those of the front matter are addresses on the site; the reference is made from the code.
    const addresses = [...text.matchAll(/^ +link: \/(?!reference\/api\/)(\S+)$/gm)];
    expect(addresses.length).toBeGreaterThan(5);
    const pages = addresses.map(([, address]) => join(ROOT, `docs/${address}.md`));
    expect(pages.filter((page) => !existsSync(page))).toEqual([]);
  });

  test("every page has a place in the sidebar of the site", () => {
    const sidebar = readFileSync(join(ROOT, "site/.vitepress/sidebar.mjs"), "utf8");
    const pages = DOCUMENTS.flatMap((path) => /docs\/(?!adr\/)(.+)\.md$/.exec(path)?.[1] ?? []);
    expect(pages.length).toBeGreaterThan(50);
    expect(pages.filter((page) => !sidebar.includes(`"${page}"`))).toEqual([]);
  });

  test("every test that the threat model names exists", () => {
    const text = readFileSync(join(ROOT, "docs/operators/security.md"), "utf8");
    const named = new Set([...text.matchAll(/`([\w-]+\.test\.ts)`/g)].map(([, name]) => name));
    expect(named.size).toBeGreaterThan(20);
    const found = new Set(TESTS.map(nameOf));
    expect([...named].filter((name) => !found.has(name as string))).toEqual([]);
  });

  test("docs/behaviour.md explains every code at the end of a test title", () => {
    const page = readFileSync(join(ROOT, "docs/behaviour.md"), "utf8");
    const explained = new Set(page.match(CODE_PATTERN));
    const suites = SOURCES.filter(
      (path) => path.startsWith(LIMITER_CONTRACT) && path.endsWith(".ts"),
    );
    const titles = [...TESTS.filter((path) => path.endsWith(".test.ts")), ...suites].flatMap(
      (path) => readFileSync(join(ROOT, path), "utf8").match(CODES_PATTERN) ?? [],
    );
    const codes = new Set(titles.flatMap(codesOf));
    expect(codes.size).toBeGreaterThan(200);
    expect([...codes].filter((code) => !explained.has(code))).toEqual([]);
  });

  test("docs/operators/runbooks/warnings.md has a section for every code of a warning", () => {
    const page = readFileSync(join(ROOT, "docs/operators/runbooks/warnings.md"), "utf8");
    const headings = [...page.matchAll(/^## (.+)$/gm)].flatMap(([, text = ""]) => text.split(", "));
    const sources = SOURCES.filter((path) => path.endsWith(".ts"))
      .map((path) => readFileSync(join(ROOT, path), "utf8"))
      .filter((text) => text.includes("emitWarning("));
    const codes = sources.flatMap((text) => [...text.matchAll(/"ZAEL_([A-Z_]+)"/g)]);
    expect(codes.length).toBeGreaterThan(8);
    const missing = codes.map(([, code = ""]) => code.toLowerCase());
    expect(missing.filter((code) => !headings.includes(code))).toEqual([]);
  });

  test("every source file that a document names exists, in the folder that it names", () => {
    const files = [
      ...SOURCES,
      ...TESTS,
      ...ROOMS.flatMap((room) => filesBelow(`packages/${room}/page`)),
    ].map((path) => `/${path}`);
    const missing = MAPS.flatMap((path) =>
      [...readFileSync(path, "utf8").matchAll(SOURCE_PATTERN)]
        .map(([, named = ""]) => named)
        .filter((named) => !files.some((file) => file.endsWith(`/${named}`)))
        .map((named) => `${nameOf(path)}: ${named}`),
    );
    expect(missing).toEqual([]);
  });

  test("every path that a document names exists, from the root or from the room of a README", () => {
    const named = MAPS.flatMap((path) =>
      [...readFileSync(path, "utf8").matchAll(PATH_PATTERN)]
        .flatMap(([, pattern = ""]) => alternativesOf(pattern))
        .map((target) => ({ path, target })),
    );
    expect(named.length).toBeGreaterThan(60);
    const places = (path: string) =>
      nameOf(path) === "README.md" ? [ROOT, dirname(path)] : [ROOT];
    const missing = named.filter(
      ({ path, target }) => !places(path).some((place) => existsSync(join(place, target))),
    );
    expect(missing).toEqual([]);
  });

  test("docs/reference/options.md names every stack option with its default", () => {
    const page = readFileSync(join(ROOT, "docs/reference/options.md"), "utf8");
    const rows = page.split("\n").map((line) => line.replaceAll("`", ""));
    const missing = Object.entries(STACK_DEFAULTS).filter(
      ([name, value]) => !rows.some((row) => row.startsWith(`| ${name} | ${value} |`)),
    );
    expect(missing).toEqual([]);
  });

  test("docs/reference/options.md has every option of opening, its default and its meaning", () => {
    const page = readFileSync(join(ROOT, "docs/reference/options.md"), "utf8");
    const opening = page.slice(page.indexOf("## Opening a store"), page.indexOf("## A limiter"));
    const rows = opening.split("\n").map((line) => line.replaceAll(/\]\([^)]*\)|\[/g, ""));
    const options = [SHARED_OPTIONS, ...STORES.map((kind) => kind.options)].flatMap((table) =>
      Object.entries<OpenOption>(table),
    );
    const missing = options.filter(([name, option]) => {
      const row = rows.find((line) => line.startsWith(`| \`${name}\` |`));
      const [, , stated = "", meaning = ""] = row?.split("|").map((cell) => cell.trim()) ?? [];
      const isConstant = typeof option.default !== "object" && option.default !== undefined;
      const isRight = !isConstant || stated.replaceAll("`", "") === String(option.default);
      return !isRight || !meaning.startsWith(option.doc);
    });
    expect(missing.map(([name]) => name)).toEqual([]);
  });

  test("a record of a decision is short", () => {
    const records = DOCUMENTS.filter((path) => path.includes("/adr/"));
    expect(records.length).toBeGreaterThan(0);
    const long = records.filter(
      (path) => readFileSync(path, "utf8").trimEnd().split("\n").length > RECORD_LINES_MAX,
    );
    expect(long).toEqual([]);
  });
});

function isErrorClass(value: unknown): boolean {
  if (typeof value !== "function") return false;
  return value === api.ZaeLimiterError || value.prototype instanceof api.ZaeLimiterError;
}

/** Whether a link of the document at `path` leads to a file, and to a heading of it. */
function leadsTo(path: string, to: string, heading: string | undefined): boolean {
  const target = to === "" ? path : normalize(join(dirname(path), to));
  if (!existsSync(target)) return false;
  if (heading === undefined) return true;
  const headings = readFileSync(target, "utf8").matchAll(/^#+ (.+)$/gm);
  return [...headings].some(([, text = ""]) => slugOf(text) === heading);
}

/** Returns the anchor that GitHub gives to a heading; site/config.mjs gives the same one. */
function slugOf(heading: string): string {
  const text = heading.trim().toLowerCase();
  return text.replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
}

/** Returns the codes of the end of a title; `(op 18, 19)` is two codes. */
function codesOf(title: string): readonly string[] {
  return title.replaceAll(/(?<=op [\d, ]*), (?=\d)/g, ", op ").match(CODE_PATTERN) ?? [];
}

/** Returns the paths that a path with one list in braces means. */
function alternativesOf(pattern: string): readonly string[] {
  const [, before = "", list, after = ""] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(pattern) ?? [];
  return list?.split(",").map((each) => `${before}${each}${after}`) ?? [pattern];
}

/** Returns the files below a folder, as paths from the root; none when there is no such folder. */
function filesBelow(folder: string): readonly string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("node_modules"))
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`);
}

function nameOf(path: string): string {
  return basename(path);
}
