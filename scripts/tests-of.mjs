/**
 * Which tests run a source file: `npm run tests-of -- packages/limiter/src/core/bucket.ts`. Without
 * a file it prints the index of all sources, as a table of Markdown.
 *
 * The tests of a file are those that reach it by the fewest imports: tests that import it, or else
 * tests of the files that use it. Tests with similar names come first.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rooms, root } from "./entry-points.mjs";

const SHOWN_MAX = 6;
/** Imports of values; a file of which only types are imported is not run by its importer. */
const IMPORT = /\b(?:import|export)\s(?!type\b)[^;'"]*?from\s*["']([^"']+)["']/g;
const SIDE_EFFECT = /\bimport\s*\(?\s*["']([^"']+)["']/g;

/** Returns each source of the rooms with its nearest tests and their distance in imports. */
export function testIndex() {
  const files = readFiles();
  const importers = importersOf(files);
  const sources = [...files.keys()].filter((path) => /^(?:src|packages\/\w+\/src)\//.test(path));
  return new Map(sources.map((source) => [source, nearestTests(source, importers)]));
}

function readFiles() {
  const folders = ["src", "test", ...rooms.map(({ name }) => `packages/${name}`)];
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((path) => `${folder}/${path.split(sep).join("/")}`)
      .filter((path) => /\.(?:ts|mjs)$/.test(path) && !path.includes("node_modules")),
  );
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

/** Returns for each file the files that import it. */
function importersOf(files) {
  const importers = new Map();
  for (const [path, text] of files) {
    const names = [...text.matchAll(IMPORT), ...text.matchAll(SIDE_EFFECT)].map(([, name]) => name);
    for (const target of new Set(names.map((name) => resolve(path, name)))) {
      importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  }
  return importers;
}

function resolve(path, name) {
  if (name.startsWith(".")) return posix.join(dirname(path), name);
  return name
    .replace(/^@zae-limiter\/test-(\w+)\//, "test/$1/")
    .replace(/^@zae-limiter\/(\w+)\//, "packages/$1/src/");
}

/** Walks from a source to its importers, until a step of the walk meets tests. */
function nearestTests(source, importers) {
  const seen = new Set([source]);
  let reached = [source];
  for (let distance = 1; reached.length > 0; distance += 1) {
    reached = reached
      .flatMap((path) => importers.get(path) ?? [])
      .filter((path) => !seen.has(path) && seen.add(path));
    const tests = reached.filter((path) => path.endsWith(".test.ts"));
    if (tests.length > 0) return { distance, tests: tests.sort(byName(source)) };
  }
  return { distance: 0, tests: [] };
}

/** Orders tests by the words of their paths: most in common with the source, fewest others. */
function byName(source) {
  const words = new Set(wordsOf(source));
  const likeness = (test) => {
    const shared = wordsOf(test).filter((word) => words.has(word)).length;
    return shared - wordsOf(test).length / 100;
  };
  return (one, other) => likeness(other) - likeness(one) || one.localeCompare(other);
}

/** Returns the words of a path: folders and parts of the name, without the common ones. */
function wordsOf(path) {
  return path.split(/[/.-]/).filter((word) => !["packages", "src", "test", "ts"].includes(word));
}

function shown(tests) {
  const more = tests.length - SHOWN_MAX;
  return more > 0 ? [...tests.slice(0, SHOWN_MAX), `and ${more} more`] : tests;
}

function printFile(source, { distance, tests }) {
  const how = distance === 1 ? "imported by" : `reached by ${distance} imports from`;
  console.log(`${source}: ${tests.length === 0 ? "no test runs it (types only?)" : how}`);
  for (const test of shown(tests)) console.log(`  ${test}`);
}

function printIndex(index) {
  console.log("| source | imports | tests |\n|---|---|---|");
  for (const [source, { distance, tests }] of index) {
    console.log(`| ${source} | ${distance} | ${shown(tests).join(", ")} |`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const index = testIndex();
  const files = process.argv.slice(2).map((path) => relative(root, join(process.cwd(), path)));
  if (files.length === 0) printIndex(index);
  for (const path of files) {
    const found = index.get(path.split(sep).join("/"));
    if (found === undefined) {
      console.error(`${path} is not a source file of a room`);
      process.exitCode = 1;
    } else printFile(path, found);
  }
}
