/**
 * Puts the pages of the site into `content/`: everything in `docs/`, the pages that lie in the root
 * of the repository, and a list of the decision records. The sources stay readable on GitHub:
 * relative links between Markdown files work there and here; links to anything else in the
 * repository become links to the repository.
 */
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, extname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const content = fileURLToPath(new URL("content", import.meta.url));
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** The address of the repository, without a slash at its end. */
export const repository = String(
  manifest.repository?.url ?? "https://github.com/zae-limiter/zae-limiter-ts",
).replace(/^git\+|\.git$/g, "");

/** Pages outside of `docs/`, and their place on the site. */
const ROOT_PAGES = new Map([
  ["ARCHITECTURE.md", "contributing/architecture.md"],
  ["CONTRIBUTING.md", "contributing/index.md"],
  ["CHANGELOG.md", "contributing/changelog.md"],
  ["SECURITY.md", "contributing/reporting.md"],
  ["examples/README.md", "getting-started/examples.md"],
  ["packages/simulator/README.md", "contributing/simulator.md"],
  ["site/index.md", "index.md"],
]);
/** Links that lead to a folder or to the README on GitHub, and to a page here. */
const ALIASES = new Map([
  ["docs/adr", "adr/index.md"],
  ["README.md", "index.md"],
  ["examples", "getting-started/examples.md"],
]);
const LINK_PATTERN = /(!?\[[^\]]*\]\()(?!https?:|mailto:|#)([^)#\s]+)((?:#[^)\s]+)?\))/g;

/** Writes all pages. */
export async function stage() {
  await mkdir(content, { recursive: true });
  for (const name of await readdir(content)) {
    if (name !== "reference") await rm(join(content, name), { recursive: true });
  }
  for (const source of await sources()) await stageOne(source);
  // The picture of the home page is named in its front matter, which takes public files only.
  await cp(join(root, "docs/images/terminal.svg"), join(content, "public/terminal.svg"));
  await writeFile(join(content, "adr/index.md"), await listOfRecords());
}

/** Writes the page or copies the file at `source`, a path from the root of the repository. */
export async function stageOne(source) {
  const place = placeOf(source);
  if (place === undefined) return;
  const target = join(content, place);
  await mkdir(dirname(target), { recursive: true });
  if (extname(source) !== ".md") return cp(join(root, source), target);
  const text = await readFile(join(root, source), "utf8");
  await writeFile(target, await withLinks(text, source, place));
}

/** Returns the path of a page in the repository, for its edit link. */
export function sourceOf(place) {
  const found = [...ROOT_PAGES].find(([, staged]) => staged === place);
  return found?.[0] ?? `docs/${place}`;
}

async function sources() {
  const docs = await readdir(join(root, "docs"), { recursive: true, withFileTypes: true });
  const paths = docs
    .filter((entry) => entry.isFile())
    .map((entry) =>
      posix.join(entry.parentPath.slice(root.length).replaceAll("\\", "/"), entry.name),
    );
  return [...paths, ...ROOT_PAGES.keys()];
}

/** Returns where a file of the repository is on the site; `undefined` when it is not there. */
function placeOf(source) {
  if (ROOT_PAGES.has(source)) return ROOT_PAGES.get(source);
  return source.startsWith("docs/") ? source.slice("docs/".length) : undefined;
}

async function withLinks(text, source, place) {
  let result = "";
  let end = 0;
  for (const match of text.matchAll(LINK_PATTERN)) {
    const [whole, before, link, after] = match;
    const target = posix.normalize(posix.join(posix.dirname(source), link)).replace(/\/$/, "");
    result += text.slice(end, match.index) + before + (await addressOf(target, place)) + after;
    end = match.index + whole.length;
  }
  return result + text.slice(end);
}

async function addressOf(target, place) {
  const there = ALIASES.get(target) ?? placeOf(target);
  const isPage = there !== undefined && (extname(there) === ".md" || /\.(png|svg)$/.test(there));
  if (isPage) {
    const path = posix.relative(posix.dirname(place), there);
    return path.startsWith(".") ? path : `./${path}`;
  }
  const kind = (await stat(join(root, target))).isDirectory() ? "tree" : "blob";
  return `${repository}/${kind}/main/${target}`;
}

async function listOfRecords() {
  const names = (await readdir(join(root, "docs/adr"))).filter((name) => /^\d{3}-/.test(name));
  const rows = await Promise.all(names.sort().map(recordRow));
  return `---\neditLink: false\n---\n\n# Decision records\n\nEach page says what was decided, why, and
what was rejected. A record is written when a decision shapes several files, or when a reader would
ask why it was not done the obvious way.\n\n| | decision |\n|---|---|\n${rows.join("\n")}\n`;
}

async function recordRow(name) {
  const text = await readFile(join(root, "docs/adr", name), "utf8");
  return `| ${name.slice(0, 3)} | [${titleOf(text)}](./${name}) |`;
}

/** Returns the first heading of a page, without the number of a decision record. */
export function titleOf(text) {
  const [, heading = ""] = /^# (.+)$/m.exec(text) ?? [];
  return heading.replace(/^(?:ADR )?\d{3}[:.]? */, "");
}
