/** The licenses of packages whose code is in a bundle: who passes them on passes these on. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { OURS } from "./entry-points.mjs";

/** Returns the names of the packages in the bundle that our own sources import. */
export function importedPackages({ inputs }) {
  const paths = Object.entries(inputs)
    .filter(([path]) => OURS.test(path))
    .flatMap(([, { imports }]) => imports.map(({ path }) => path));
  return packageFolders(paths).map((folder) => folder.replace(/^.*node_modules\//, ""));
}

/** Returns one text for all packages of a bundle; what several have in common is there once. */
export async function noticesOf(root, metafile) {
  const headings = new Map();
  for (const folder of packageFolders(Object.keys(metafile.inputs))) {
    const { heading, text } = await noticeOf(join(root, folder));
    headings.set(text, (headings.get(text) ?? "") + heading);
  }
  const notices = [...headings].map(([text, heading]) => heading + text);
  return `This package contains code of the packages below.\n\n${notices.join("\n")}`;
}

function packageFolders(paths) {
  const folders = paths
    .map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0])
    .filter((folder) => folder !== undefined);
  return [...new Set(folders)].sort();
}

async function noticeOf(folder) {
  const { name, version, license } = JSON.parse(
    await readFile(join(folder, "package.json"), "utf8"),
  );
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? "" : `\n${await readFile(join(folder, file), "utf8")}`;
  return { heading: `${"-".repeat(80)}\n${name} ${version}, ${license}\n`, text };
}
