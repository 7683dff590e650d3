/** Returns the source of a built file, both without their ending. */
export function sourcePath(built: string): string;
