/** Compiles `src` and the sources of the rooms to `target`, a folder per room. */
export function compile(
  target: string,
  options?: { readonly inPlaceOfSources?: boolean },
): Promise<void>;
