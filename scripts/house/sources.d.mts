export type LineKind = "blank" | "code" | "comment" | "import";
export interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly kinds: readonly LineKind[];
}
export function toSource(path: string, text: string): Source;
export function readSources(): Source[];
export function importersOf(sources: readonly Source[]): Map<string, Set<string>>;
