export function compile(
  name: string,
  target: string,
  options?: { readonly inPlaceOfSources?: boolean },
): Promise<void>;
