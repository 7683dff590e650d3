/** What all records of one namespace share. */

import type { Random } from "../domain/chance.ts";
import type { Clock } from "../domain/clock.ts";
import type { ItemStore } from "../storage/item-store.ts";

export interface RecordContext {
  readonly store: ItemStore;
  readonly namespaceId: string;
  readonly clock: Clock;
  readonly random: Random;
}
