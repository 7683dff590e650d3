/** The examples in the comments of the source. */

import { lineAt, type SourceFile } from "../architecture/source.ts";

/** One fenced block under `@example`. */
export interface Example {
  /** The exported symbol whose comment it is in, or whose member's. */
  readonly owner: string;
  readonly path: string;
  /** The line of its first line of code. */
  readonly line: number;
  readonly code: string;
  /** False for a block marked `no-run`, with its reason: it needs something a test has not. */
  readonly runs: boolean;
}

const COMMENT_PATTERN = /\/\*\*[\s\S]*?\*\//g;
const FENCE_PATTERN = /```ts([^\n]*)\n([\s\S]*?)\n[ *]*```/g;
const NO_RUN_PATTERN = /^ no-run: \S.*$/;
const DECLARATION_PATTERN =
  /^export (?:abstract )?(?:async )?(?:class|function|const|interface|type) (\w+)/gm;

/** All examples of a file, in their order. */
export function examplesOf(file: SourceFile): Example[] {
  return [...file.text.matchAll(COMMENT_PATTERN)].flatMap((comment) => {
    const at = comment[0].indexOf("@example");
    if (at < 0) return [];
    const owner = ownerAt(file, comment.index, comment.index + comment[0].length);
    return [...comment[0].slice(at).matchAll(FENCE_PATTERN)].map((fence) => {
      const [block, mark = "", code = ""] = fence;
      const start = comment.index + at + fence.index + block.indexOf("\n") + 1;
      if (mark !== "" && !NO_RUN_PATTERN.test(mark)) {
        throw new Error(`${file.path}: expected "ts" or "ts no-run: why", got "ts${mark}"`);
      }
      return {
        owner,
        path: file.path,
        line: lineAt(file.text, start),
        code: code.replace(/^[ \t]*\* ?/gm, ""),
        runs: mark === "",
      };
    });
  });
}

/** Returns the owner of a comment: at the margin the next declaration, else the one around it. */
function ownerAt(file: SourceFile, start: number, end: number): string {
  const atMargin = start === 0 || file.text[start - 1] === "\n";
  const declarations = [...file.text.matchAll(DECLARATION_PATTERN)];
  const found = atMargin
    ? declarations.find(({ index }) => index > end)
    : declarations.findLast(({ index }) => index < start);
  return found?.[1] ?? "";
}
