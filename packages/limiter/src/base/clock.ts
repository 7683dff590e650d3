/** Time is an argument: everything that needs the time is given a clock. */

/** Epoch milliseconds, whole. */
export type Clock = () => number;

/** The clock of this machine. */
export const systemClock: Clock = () => Date.now();
