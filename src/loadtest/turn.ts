/** Lets the process do everything else that is due. */

/** Users that never wait for anything real would keep timers and sockets from their turn. */
export type Turn = () => Promise<void>;

export const systemTurn: Turn = () => new Promise((resolve) => void setImmediate(resolve));
