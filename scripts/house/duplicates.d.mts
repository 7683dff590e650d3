import type { Source } from "./sources.mjs";

export function duplicatedRuns(
  sources: readonly Source[],
  minimum?: number,
): { readonly lines: number; readonly places: readonly [string, string] }[];
