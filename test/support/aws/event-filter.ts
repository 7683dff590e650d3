/** How Lambda decides which records of a stream reach a function, as far as our filters go. */

type Filter = {
  readonly [name: string]: Filter | readonly (string | { readonly prefix: string })[];
};

/** Every name of the filter must be there; of a list of values, one must match. */
export function matchesFilter(filter: object, record: unknown): boolean {
  return Object.entries(filter as Filter).every(([name, expected]) => {
    const value = (record as Record<string, unknown> | undefined)?.[name];
    if (!Array.isArray(expected)) return matchesFilter(expected, value);
    return (expected as readonly (string | { readonly prefix: string })[]).some((candidate) =>
      typeof candidate === "string"
        ? value === candidate
        : typeof value === "string" && value.startsWith(candidate.prefix),
    );
  });
}
