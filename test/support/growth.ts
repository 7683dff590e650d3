/** How the time of a piece of work grows with its size. */

/** How much longer the long work is. */
const FACTOR = 16;
const ROUNDS = 7;

/** Growth that no linear work shows on a busy machine; quadratic work has 256. */
export const LINEAR_MAX = 4 * FACTOR;

/**
 * Returns how many times longer the work takes for 16 times the size. The two are measured in turn
 * and the shortest time of each counts, so that other work of the machine does not.
 */
export function growthOf(work: (size: number) => void, size: number): number {
  work(size);
  let short = Number.POSITIVE_INFINITY;
  let long = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    short = Math.min(short, timeOf(work, size));
    long = Math.min(long, timeOf(work, size * FACTOR));
  }
  return long / short;
}

function timeOf(work: (size: number) => void, size: number): number {
  const from = performance.now();
  work(size);
  return performance.now() - from;
}
