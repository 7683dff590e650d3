/** Feeds that can be stopped while they wait for more. */

import type { ChangeRecord } from "../storage/item-store.ts";

/** Reads a feed; the signal is aborted when its caller stops, or by one of `signals`. */
export function stoppable(
  read: (signal: AbortSignal) => AsyncGenerator<ChangeRecord, undefined>,
  ...signals: readonly (AbortSignal | undefined)[]
): AsyncIterableIterator<ChangeRecord> {
  const returned = new AbortController();
  const given = signals.filter((signal) => signal !== undefined);
  const records = read(AbortSignal.any([returned.signal, ...given]));
  const iterator: AsyncIterableIterator<ChangeRecord> = {
    next: () => records.next(),
    return: () => {
      // A generator that waits for a change sees `return` only after that change, perhaps never.
      returned.abort();
      return records.return(undefined);
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
