/** The promise of work that is done already. A caller may compare with it, and need not wait. */
export const DONE: Promise<void> = Promise.resolve();
