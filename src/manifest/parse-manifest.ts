/** From the text of a file to a manifest, with the lines of everything that is wrong. */

import { isAlias, isMap, isScalar, LineCounter, type Node, type Pair, parseDocument } from "yaml";
import { checkManifest } from "./check-manifest.ts";
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
  const checked = checkManifest(dataOf(document));
  if ("manifest" in checked) return checked.manifest;
  const placed = checked.problems.map((problem): PlacedProblem => {
    const offset = offsetOf(document, problem);
    return { ...problem, ...place(offset) };
  });
  throw new InvalidManifestError(placed.sort(inOrder));
}

function inOrder(a: PlacedProblem, b: PlacedProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

type Document = ReturnType<typeof parseDocument>;

/** Aliases within aliases grow without bounds; the parser stops at some point, with an error. */
function dataOf(document: Document): unknown {
  try {
    return document.toJS();
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw new InvalidManifestError([{ path: [], message: error.message, line: 1, column: 1 }]);
  }
}

/** Where a problem stands; for what came in through an anchor, the place that took it in. */
function offsetOf(document: Document, { path, atName = false }: Problem): number {
  let node: Node | null = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [depth, name] of path.entries()) {
    const pair = pairNamed(document, node, name);
    if (pair === undefined) return offset;
    const last = depth === path.length - 1;
    const value = pair.value as Node | null;
    // A mapping begins on the line after its name, where the reader would look in vain.
    const shown = last && !atName && isScalar(value) ? value : (pair.key as Node);
    offset = startOf(shown) ?? offset;
    node = value;
  }
  return offset;
}

function pairNamed(document: Document, node: Node | null, name: string): Pair | undefined {
  const resolved = isAlias(node) ? node.resolve(document) : node;
  if (!isMap(resolved)) return undefined;
  return resolved.items.find(({ key }) => isScalar(key) && String(key.value) === name);
}

function startOf(node: Node | null): number | undefined {
  return node?.range?.[0];
}

/** The parser speaks to programmers; two of its messages would send others the wrong way. */
function syntaxMessage(code: string, message: string): string {
  if (code === "DUPLICATE_KEY") return "this name is already there; each may be declared once";
  if (code === "MULTIPLE_DOCS") return "expected one document; write one file per namespace";
  return message;
}
