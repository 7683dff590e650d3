/** Returns the weight of a page in the search, by its address. */
export function weightOf(id: string): number;
