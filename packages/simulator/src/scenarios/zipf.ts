/** Few that are asked for often and many that are asked for rarely. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";

/** Returns a source of ranks from 0, each with probability `1 / (rank + 1) ** exponent`. */
export function zipf(count: number, exponent: number, random: Random): () => number {
  const sums = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank += 1) {
    sum += 1 / (rank + 1) ** exponent;
    sums[rank] = sum;
  }
  return () => {
    const wanted = random() * sum;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] as number) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
