/** The output and the files of `npm install` in a fresh clone, as package-lock.json decides. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Locked {
  readonly engines?: { readonly node?: string };
  readonly hasInstallScript?: boolean;
  readonly libc?: readonly string[];
  readonly resolved?: string;
}

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> };
const manifest = JSON.parse(read("package.json")) as {
  readonly allowScripts: Readonly<Record<string, boolean>>;
  readonly scripts: Readonly<Record<string, string>>;
};

function matching(predicate: (locked: Locked, path: string) => boolean): string[] {
  return Object.entries(packages)
    .filter(([path, locked]) => predicate(locked, path))
    .map(([path]) => path);
}

test("npm 10 and npm 11 leave package-lock.json as it is: it has no libc fields", () => {
  // npm 11 writes them and npm 10 removes them; without them both change nothing. `npx npm@10
  // install` removes those of a package that was added.
  expect(matching(({ libc }) => libc !== undefined)).toEqual([]);
});

test("package-lock.json names no registry", () => {
  expect(matching(({ resolved = "" }) => resolved.includes("://"))).toEqual([]);
});

test("npm warns of no package that wants a newer Node: the oldest that we support is enough", () => {
  expect(matching(({ engines }) => !acceptsOldest(engines?.node ?? "*"))).toEqual([]);
});

test("npm warns of no install script that is not decided upon", () => {
  const undecided = matching(
    ({ hasInstallScript = false }, path) =>
      hasInstallScript && !(path.replace(/^.*node_modules\//, "") in manifest.allowScripts),
  );
  expect(undecided).toEqual([]);
});

test("no script of package.json runs when a user installs the package", () => {
  const names = Object.keys(manifest.scripts);
  expect(names.filter((name) => /^(pre|post)?(install|prepare)$/.test(name))).toEqual([]);
});

test.each([
  [">=22.22.2", false],
  ["^20.19.0 || >=22.12.0", true],
  ["20 || >=22", true],
  [">=20.20", false],
  ["18.x || 22.x", false],
  [">= 0.6", true],
])("the test above reads %s as a range that has %s for Node 20.19", (range, accepted) => {
  expect(acceptsOldest(range)).toBe(accepted);
});

/** Whether Node 20.19 is in a range, of the forms that packages use. */
function acceptsOldest(range: string): boolean {
  return range.split("||").some((part) => {
    const found = /^\s*(>=|\^|~|=)?\s*v?(\d+|\*|x)(?:\.(\d+))?/.exec(part);
    const [, operator = "=", major = "", minor = "0"] = found ?? [];
    if (major === "*" || major === "x") return true;
    const isEnough = Number(major) < 20 || (Number(major) === 20 && Number(minor) <= 19);
    return operator === ">=" ? isEnough : Number(major) === 20 && isEnough;
  });
}
