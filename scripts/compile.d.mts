/** A text of a source file, and its replacement. */
export interface SourceChange {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Compiles `src` and the sources of the rooms to `target`, a folder per room. */
export function compile(
  target: string,
  options?: { readonly inPlaceOfSources?: boolean; readonly changes?: readonly SourceChange[] },
): Promise<void>;
