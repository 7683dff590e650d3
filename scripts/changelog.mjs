/**
 * The changelog by small entries: `fold VERSION [DATE]` moves the files of `changes` into
 * CHANGELOG.md as the section of that version, and `notes VERSION` prints the section, for the notes
 * of a release; VERSION must be that of package.json.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const KINDS = ["added", "changed", "deprecated", "removed", "fixed", "security"];
const COLUMNS_MAX = 100;

/** A mistake of the caller, printed without a stack. */
export class ChangelogError extends Error {}

/** Reads the entries of a folder, each with its file, kind and text; sorted by file. */
export function readEntries(folder) {
  const files = readdirSync(folder).filter((name) => name !== "README.md");
  return files.sort().map((name) => {
    const lines = readFileSync(join(folder, name), "utf8").trim().split(/\r?\n/);
    const kind = /^kind: (\w+)$/.exec(lines[0] ?? "")?.[1];
    const text = lines.slice(1).join("\n").trim();
    if (!name.endsWith(".md")) throw new ChangelogError(`changes/${name}: expected a .md file`);
    if (kind === undefined || !KINDS.includes(kind)) {
      throw new ChangelogError(
        `changes/${name}: expected "kind: ${KINDS.join("|")}" in the first line, got "${lines[0]}"`,
      );
    }
    if (text === "") throw new ChangelogError(`changes/${name}: expected text after the kind`);
    if (lines.some((line) => line.length > COLUMNS_MAX - 2)) {
      throw new ChangelogError(
        `changes/${name}: expected lines of at most ${COLUMNS_MAX - 2} columns`,
      );
    }
    return { name, kind, text };
  });
}

/** Adds the entries to CHANGELOG.md as the section of a version, above all older sections. */
export function fold(changelog, entries, version, date) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) {
    throw new ChangelogError(`expected a version such as 1.2.3, got "${version}"`);
  }
  if (entries.length === 0) throw new ChangelogError("expected an entry in changes, found none");
  if (sectionOf(changelog, version) !== undefined) {
    throw new ChangelogError(`CHANGELOG.md already has a section of ${version}`);
  }
  const parts = KINDS.flatMap((kind) => {
    const items = entries.filter((entry) => entry.kind === kind).map(({ text }) => listItem(text));
    const heading = `### ${kind[0].toUpperCase()}${kind.slice(1)}`;
    return items.length === 0 ? [] : [`${heading}\n\n${items.join("\n")}`];
  });
  const section = `## [${version}] - ${date}\n\n${parts.join("\n\n")}\n\n`;
  const at = changelog.search(/^## \[/m);
  if (at < 0) return `${changelog.trimEnd()}\n\n${section.trimEnd()}\n`;
  return changelog.slice(0, at) + section + changelog.slice(at);
}

/** Returns the text of a version's section without its heading; `undefined` without one. */
export function sectionOf(changelog, version) {
  const sections = changelog.split(/^(?=## \[)/m);
  const section = sections.find((each) => each.startsWith(`## [${version}]`));
  return section?.slice(section.indexOf("\n") + 1).trim();
}

function listItem(text) {
  return `- ${text.replaceAll("\n", "\n  ").replaceAll(/^ +$/gm, "")}`;
}

function main([command, version, date = new Date().toISOString().slice(0, 10)]) {
  const path = join(ROOT, "CHANGELOG.md");
  const changelog = readFileSync(path, "utf8");
  if (command === "notes" && version !== undefined) {
    const { version: ours } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    if (version !== ours) {
      throw new ChangelogError(`package.json has the version ${ours}, not ${version}`);
    }
    const section = sectionOf(changelog, version);
    if (section === undefined) {
      throw new ChangelogError(`CHANGELOG.md has no section of ${version}: fold the changes first`);
    }
    console.log(section);
  } else if (command === "fold" && version !== undefined) {
    const folder = join(ROOT, "changes");
    const entries = readEntries(folder);
    writeFileSync(path, fold(changelog, entries, version, date));
    for (const { name } of entries) rmSync(join(folder, name));
    console.log(`CHANGELOG.md has ${entries.length} entries more, under ${version}.`);
  } else {
    throw new ChangelogError("Usage: npm run changelog -- fold VERSION [DATE] | notes VERSION");
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof ChangelogError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
