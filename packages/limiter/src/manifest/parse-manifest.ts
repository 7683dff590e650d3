/** From the text of a file to a manifest, with the lines of everything that is wrong. */

import {
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from "yaml";
import { entryOf } from "../base/entry.ts";
import { checkManifest } from "./check-manifest.ts";
import { rememberPlaces } from "./entity-records.ts";
import type { Manifest } from "./manifest.ts";
import { InvalidManifestError, type PlacedProblem, type Problem } from "./problem.ts";

/**
 * Reads YAML, and so JSON too. Names are text whatever they look like, because `007` is a fine id;
 * `<<` takes over what an anchor marks. Throws `InvalidManifestError` with all problems.
 */
export function parseManifest(text: string): Manifest {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter,
    merge: true,
    stringKeys: true,
    // The parser compares each name with all names before it; `repeatedName` takes one step each.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "error",
  });
  const place = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset);
    return { line, column: col };
  };
  const [error] = document.errors;
  if (error !== undefined) {
    const problem = { path: [], message: syntaxMessage(error.code, error.message) };
    throw new InvalidManifestError([{ ...problem, ...place(error.pos[0]) }]);
  }
  const repeated = repeatedName(document);
  if (repeated !== undefined) {
    throw new InvalidManifestError([{ path: [], message: REPEATED, ...place(repeated) }]);
  }
  const checked = checkManifest(dataOf(document));
  const pairs: PairsByName = new Map();
  if ("manifest" in checked) {
    rememberPlaces(checked.manifest, (id, field) =>
      place(offsetOf(document, { path: ["entities", id, field], message: "" }, pairs)),
    );
    return checked.manifest;
  }
  const placed = checked.problems.map((problem): PlacedProblem => {
    const offset = offsetOf(document, problem, pairs);
    return { ...problem, ...place(offset) };
  });
  throw new InvalidManifestError(placed.sort(inOrder));
}

function inOrder(a: PlacedProblem, b: PlacedProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

type Document = ReturnType<typeof parseDocument>;
/** The pairs of mappings in which a problem was searched, by their names. */
type PairsByName = Map<YAMLMap, ReadonlyMap<string, Pair>>;

const REPEATED = "this name is already there; each may be declared once";

/** Returns the position of the first name that its mapping already has. */
function repeatedName(document: Document): number | undefined {
  let first: number | undefined;
  // Files nest as deep as they like, and the stack does not.
  const open: unknown[] = [document.contents];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (isPair(node)) open.push(node.value ?? null);
    const offset = isMap(node) ? repeatedIn(node) : undefined;
    if (offset !== undefined && offset < (first ?? Number.POSITIVE_INFINITY)) first = offset;
    if (isCollection(node)) for (const item of node.items) open.push(item);
  }
  return first;
}

function repeatedIn({ items }: YAMLMap): number | undefined {
  const names = new Set<unknown>();
  for (const { key } of items) {
    if (!isScalar(key)) continue;
    if (names.has(key.value)) return startOf(key);
    names.add(key.value);
  }
  return undefined;
}

/** Aliases within aliases grow without bounds; the parser stops at some point, with an error. */
function dataOf(document: Document): unknown {
  try {
    return document.toJS();
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw new InvalidManifestError([{ path: [], message: error.message, line: 1, column: 1 }]);
  }
}

/** Returns the position of a problem; for a part from an anchor, the position of its alias. */
function offsetOf(
  document: Document,
  { path, atName = false }: Problem,
  pairs: PairsByName,
): number {
  let node: Node | null = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [depth, name] of path.entries()) {
    const listed = isSeq(node) ? (node.items[Number(name)] as Node | undefined) : undefined;
    if (listed !== undefined) {
      offset = startOf(listed) ?? offset;
      node = listed;
      continue;
    }
    const pair = pairNamed(document, node, name, pairs);
    if (pair === undefined) return offset;
    const last = depth === path.length - 1;
    const value = pair.value as Node | null;
    // A mapping begins on the line after its name; the problem is shown at the name.
    const shown = last && !atName && isScalar(value) ? value : (pair.key as Node);
    offset = startOf(shown) ?? offset;
    node = value;
  }
  return offset;
}

function pairNamed(
  document: Document,
  node: Node | null,
  name: string,
  pairs: PairsByName,
): Pair | undefined {
  const resolved = isAlias(node) ? node.resolve(document) : node;
  if (!isMap(resolved)) return undefined;
  const named = (pair: Pair) =>
    isScalar(pair.key) ? [[String(pair.key.value), pair] as const] : [];
  return entryOf(pairs, resolved, () => new Map(resolved.items.flatMap(named))).get(name);
}

function startOf(node: Node | null): number | undefined {
  return node?.range?.[0];
}

/** Replaces one message of the parser, which would mislead the reader of a limits file. */
function syntaxMessage(code: string, message: string): string {
  if (code === "MULTIPLE_DOCS") return "expected one document; write one file per namespace";
  return message;
}
