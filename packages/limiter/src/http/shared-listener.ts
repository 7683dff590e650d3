/**
 * One listener for any number of callbacks. A connection may carry any number of requests, and a
 * request may pass any number of middlewares; emitters warn of a leak after ten listeners.
 */

/** The callbacks of each source that has a listener of ours. */
const callbacks = new WeakMap<object, Set<() => void>>();

/**
 * Calls `callback` when the source calls `listen`'s listener. Returns a function that stops this.
 */
export function share(
  source: object,
  listen: (listener: () => void) => void,
  callback: () => void,
): () => void {
  const all = callbacks.get(source) ?? new Set();
  if (!callbacks.has(source)) {
    callbacks.set(source, all);
    listen(() => {
      for (const each of [...all]) each();
    });
  }
  all.add(callback);
  return () => void all.delete(callback);
}
