/** Returns the source of a built file, both without their ending. */
export function sourcePath(built: string): string;

/** Returns where a source is built to, below `dist`, with its ending. */
export function builtPath(source: string): string;
