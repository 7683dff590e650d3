/** A stream whose reader is started anew now and then: the last records come again. */

import type { Random } from "../../domain/chance.ts";
import type { ChangeRecord } from "../../storage/item-store.ts";

/** A batch that is repeated has at most so many records. */
const AGAIN_MAX = 3;

export async function* withDuplicates(
  records: AsyncIterable<ChangeRecord>,
  share: () => number,
  random: Random,
): AsyncGenerator<ChangeRecord> {
  const last: ChangeRecord[] = [];
  for await (const record of records) {
    yield record;
    last.push(record);
    if (last.length > AGAIN_MAX) last.shift();
    if (share() > 0 && random() < share()) {
      yield* last.slice(-1 - Math.floor(random() * last.length));
    }
  }
}
