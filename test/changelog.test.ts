/** The changelog by small entries: what `scripts/changelog.mjs` reads, folds and prints. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fold, readEntries, sectionOf } from "../scripts/changelog.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHANGELOG = "# Changelog\n\nWords.\n\n## [0.1.0] - unreleased\n\n### Added\n\n- All.\n";

describe("entries", () => {
  let folder: string;
  const entry = (name: string, text: string) => writeFileSync(join(folder, name), text);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-changes-"));
    entry("README.md", "not an entry");
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  test("every entry of this repository can be read", () => {
    expect(() => readEntries(join(ROOT, "changes"))).not.toThrow();
  });

  test("an entry is a kind and a text, and files are read in the order of their names", () => {
    entry("b.md", "kind: fixed\n\nOne\n\ntwo.\n");
    entry("a.md", "kind: added\r\n\r\nThree.\r\n");
    expect(readEntries(folder)).toEqual([
      { name: "a.md", kind: "added", text: "Three." },
      { name: "b.md", kind: "fixed", text: "One\n\ntwo." },
    ]);
  });

  test.each([
    ["a.md", "Fixed a bug.", /^changes\/a\.md: expected "kind: .*, got "Fixed a bug\."$/],
    ["a.md", "kind: nice\n\nText.", /got "kind: nice"$/],
    ["a.md", "kind: fixed\n\n", /expected text after the kind/],
    ["a.txt", "kind: fixed\n\nText.", /expected a \.md file/],
    ["a.md", `kind: fixed\n\n${"x".repeat(99)}`, /at most 98 columns/],
  ])("an entry that cannot be used is refused with its file: %s %j", (name, text, message) => {
    entry(name, text);
    expect(() => readEntries(folder)).toThrow(message);
  });
});

describe("the changelog", () => {
  test("entries become the newest section, grouped by kind, and older sections stay", () => {
    const entries = [
      { name: "a.md", kind: "fixed", text: "One\n\ntwo." },
      { name: "b.md", kind: "added", text: "Three." },
      { name: "c.md", kind: "fixed", text: "Four." },
    ];
    const folded = fold(CHANGELOG, entries, "0.2.0", "2026-12-01");
    const section = "### Added\n\n- Three.\n\n### Fixed\n\n- One\n\n  two.\n- Four.";
    expect(folded).toBe(
      CHANGELOG.replace("## [0.1.0]", `## [0.2.0] - 2026-12-01\n\n${section}\n\n## [0.1.0]`),
    );
    expect(sectionOf(folded, "0.2.0")).toBe(section);
    expect(sectionOf(folded, "0.1.0")).toBe("### Added\n\n- All.");
    expect(sectionOf(folded, "0.3.0")).toBeUndefined();
  });

  test("folding refuses a version that exists, text that is not a version, and no entries", () => {
    const one = [{ name: "a.md", kind: "fixed", text: "One." }];
    expect(() => fold(CHANGELOG, one, "0.1.0", "2026-12-01")).toThrow(/already has a section/);
    expect(() => fold(CHANGELOG, one, "v0.2.0", "2026-12-01")).toThrow(/expected a version/);
    expect(() => fold(CHANGELOG, [], "0.2.0", "2026-12-01")).toThrow(/expected an entry/);
  });

  test("the version of package.json has a section, from which a release takes its notes", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(sectionOf(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version)).toMatch(/^###/);
  });
});
