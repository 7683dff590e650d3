/** Returns each source of the rooms with its nearest tests and their distance in imports. */
export function testIndex(): Map<string, { readonly distance: number; readonly tests: string[] }>;
