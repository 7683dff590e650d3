/** A stream whose reader restarts now and then: the last records are delivered again. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { ChangeRecord } from "@zae-limiter/limiter/storage/item-store.ts";

/** Maximum number of records of a batch that is repeated. */
const AGAIN_MAX = 3;

export function withDuplicates(
  records: AsyncIterable<ChangeRecord>,
  share: () => number,
  random: Random,
): AsyncIterable<ChangeRecord> {
  return {
    [Symbol.asyncIterator]: () => {
      const source = records[Symbol.asyncIterator]();
      const last: ChangeRecord[] = [];
      let again: ChangeRecord[] = [];
      const next = async (): Promise<IteratorResult<ChangeRecord, undefined>> => {
        const repeated = again.shift();
        if (repeated !== undefined) return { done: false, value: repeated };
        const result = await source.next();
        if (result.done === true) return { done: true, value: undefined };
        last.push(result.value);
        if (last.length > AGAIN_MAX) last.shift();
        if (share() > 0 && random() < share()) {
          again = last.slice(-1 - Math.floor(random() * last.length));
        }
        return result;
      };
      // Passed on at once: a reader that waits for a record notices nothing else.
      const end = async (): Promise<IteratorResult<ChangeRecord, undefined>> => {
        again = [];
        await source.return?.();
        return { done: true, value: undefined };
      };
      return { next, return: end };
    },
  };
}
