/** Feeds that can be stopped while they wait for more. */

/** Reads a feed; the signal is aborted when its caller stops, or by one of `signals`. */
export function stoppable<Entry>(
  read: (signal: AbortSignal) => AsyncGenerator<Entry, undefined>,
  ...signals: readonly (AbortSignal | undefined)[]
): AsyncIterableIterator<Entry> {
  const returned = new AbortController();
  const given = signals.filter((signal) => signal !== undefined);
  const entries = read(AbortSignal.any([returned.signal, ...given]));
  const iterator: AsyncIterableIterator<Entry> = {
    next: () => entries.next(),
    return: () => {
      // A generator that waits for a change sees `return` only after that change, perhaps never.
      returned.abort();
      return entries.return(undefined);
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
