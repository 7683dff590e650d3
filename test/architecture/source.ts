/** The files of a source folder, as text and with everything blanked that is not code. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Rooms import each other by names that begin with it. */
export const SCOPE = "@zae-limiter/";

/** One file. The three texts have the same length, so that a position means the same in each. */
export interface SourceFile {
  /** Relative to the project, with slashes: `packages/limiter/src/core/bucket.ts`. */
  readonly path: string;
  readonly text: string;
  /** Comments blanked. */
  readonly code: string;
  /** Comments and the contents of strings and regular expressions blanked. */
  readonly words: string;
  /** Regular expressions that are written as such, in their order. */
  readonly patterns: readonly Literal[];
}

/** A regular expression between slashes. */
interface Literal {
  readonly position: number;
  readonly source: string;
  readonly flags: string;
}

/** A rule that is broken somewhere. */
export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
}

/** The folders of sources: the one of the package, then the one of each room. */
function sourceFolders(root: string): string[] {
  return ["src", ...readdirSync(join(root, "packages")).map((room) => `packages/${room}/src`)];
}

/** All TypeScript files of the package and its rooms, in the order of their paths. */
export function readSources(root: string): SourceFile[] {
  return sourceFolders(root)
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
        (entry) => `${folder}/${entry.replaceAll("\\", "/")}`,
      ),
    )
    .filter((path) => path.endsWith(".ts"))
    .sort()
    .map((path) => toSource(path, readFileSync(join(root, path), "utf8")));
}

/** Which rooms each room may import, as their manifests state it. */
export type RoomArrows = ReadonlyMap<string, readonly string[]>;

/** Reads the arrows between rooms from the dependencies in their manifests. */
export function readRoomArrows(root: string): RoomArrows {
  return new Map(
    readdirSync(join(root, "packages")).map((room) => {
      const text = readFileSync(join(root, "packages", room, "package.json"), "utf8");
      const { dependencies = {} } = JSON.parse(text) as { dependencies?: Record<string, string> };
      const names = Object.keys(dependencies).filter((name) => name.startsWith(SCOPE));
      return [room, names.map((name) => name.slice(SCOPE.length))];
    }),
  );
}

/** A file from its text. */
export function toSource(path: string, text: string): SourceFile {
  const pieces = piecesOf(text);
  return {
    path,
    text,
    code: blank(pieces, ["comment"]),
    words: blank(pieces, ["comment", "quote"]),
    patterns: literalsOf(pieces),
  };
}

/** The line a position is on, from 1. */
export function lineAt(text: string, position: number): number {
  return text.slice(0, position).split("\n").length;
}

/** Returns lines such as `src/index.ts:12 core imports nothing`; empty when all is well. */
export function report(violations: readonly Violation[]): string {
  return violations.map(({ path, line, rule }) => `${path}:${line} ${rule}`).join("\n");
}

type Kind = "comment" | "quote" | "code";

interface Piece {
  readonly kind: Kind;
  readonly text: string;
}

/** Texts that may hide words. A regular expression is possible only where a value may begin. */
const HIDING: readonly [Kind, RegExp][] = [
  ["comment", /^#!.*/y],
  ["comment", /\/\/[^\n]*/y],
  ["comment", /\/\*[\s\S]*?\*\//y],
  ["quote", /"(?:\\.|[^"\\\n])*"/y],
  ["quote", /'(?:\\.|[^'\\\n])*'/y],
  [
    "quote",
    /(?<=(?:[(,=:[!&|?{};>\n]|return)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y,
  ],
  ["quote", /`(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y],
];
/** The rest of a template after one of its `${ }`. */
const RESUMED: [Kind, RegExp] = ["quote", /\}(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y];

function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  /** For each `${` we are in, how many braces are open within it. */
  const templates: number[] = [];
  for (let position = 0; position < text.length; ) {
    const piece = pieceAt(text, position, templates.at(-1) === 0);
    follow(templates, piece);
    pieces.push(piece);
    position += piece.text.length;
  }
  return pieces;
}

function blank(pieces: readonly Piece[], kinds: readonly Kind[]): string {
  return pieces
    .map(({ kind, text }) => (kinds.includes(kind) ? text.replace(/[^\n]/g, " ") : text))
    .join("");
}

function literalsOf(pieces: readonly Piece[]): Literal[] {
  const literals: Literal[] = [];
  let position = 0;
  for (const { kind, text } of pieces) {
    if (kind === "quote" && text.startsWith("/")) {
      const end = text.lastIndexOf("/");
      literals.push({ position, source: text.slice(1, end), flags: text.slice(end + 1) });
    }
    position += text.length;
  }
  return literals;
}

function pieceAt(text: string, position: number, resumes: boolean): Piece {
  for (const [kind, pattern] of resumes ? [...HIDING, RESUMED] : HIDING) {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return { kind, text: found };
  }
  return { kind: "code", text: text[position] as string };
}

function follow(templates: number[], { kind, text }: Piece): void {
  if (kind === "quote" && text.startsWith("}")) templates.pop();
  if (kind === "quote" && /^[`}]/.test(text) && text.endsWith("${")) templates.push(0);
  const depth = templates.at(-1);
  if (kind !== "code" || depth === undefined) return;
  if (text === "{") templates[templates.length - 1] = depth + 1;
  if (text === "}") templates[templates.length - 1] = depth - 1;
}
