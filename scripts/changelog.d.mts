export interface Entry {
  readonly name: string;
  readonly kind: string;
  readonly text: string;
}
export function readEntries(folder: string): Entry[];
export function fold(
  changelog: string,
  entries: readonly Entry[],
  version: string,
  date: string,
): string;
export function sectionOf(changelog: string, version: string): string | undefined;
