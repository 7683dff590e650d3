/** Maps of what this process remembers, of which the least used is forgotten beyond a bound. */

import { LRUCache } from "lru-cache";

/**
 * Makes a map bounded by size: a bound by count reserves memory in advance, for every namespace.
 */
export function boundedMap<V extends object | number>(most: number): LRUCache<string, V> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 });
}
