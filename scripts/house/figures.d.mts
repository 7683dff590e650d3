import type { Source } from "./sources.mjs";

export interface RoomRow {
  readonly room: string;
  readonly part: string;
  readonly files: number;
  readonly lines: number;
}
export function roomRows(sources: readonly Source[]): RoomRow[];
export function crowdedFolders(
  sources: readonly Source[],
): { readonly folder: string; readonly files: number }[];
export function smallFiles(
  sources: readonly Source[],
  importers: ReadonlyMap<string, ReadonlySet<string>>,
  entries: ReadonlySet<string>,
): { readonly path: string; readonly lines: number; readonly importer: string }[];
