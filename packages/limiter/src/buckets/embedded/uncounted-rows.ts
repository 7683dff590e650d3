/**
 * Counts the usage that is still in the rows of an embedded store, whichever process left it, and
 * closes their periods that are over.
 */

import type { Clock } from "../../base/time.ts";
import type { UncountedUsage } from "../../records/usage/usage.ts";
import type { BucketId, BucketRow, BucketTable } from "./bucket-table.ts";
import { resourcesIn } from "./embedded-transfer.ts";

export class UncountedRows implements UncountedUsage {
  readonly #table: BucketTable;
  readonly #clock: Clock;

  constructor(table: BucketTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  async count({ entityId, resource }: Partial<BucketId>): Promise<void> {
    if (entityId !== undefined) {
      await this.#countRows(() => {
        const rows = this.#table.ofEntity(entityId, true);
        return rows.filter((row) => resource === undefined || row.resource === resource);
      });
    } else if (resource !== undefined) {
      let after: string | undefined;
      do {
        const from = after;
        after = await this.#countRows(() => this.#table.ofResource(resource, from, true));
      } while (after !== undefined);
    } else {
      for await (const name of resourcesIn(this.#table)) await this.count({ resource: name });
    }
  }

  /** Counts the usage of some rows in one step; returns the entity of the last, if any. */
  #countRows(read: () => readonly BucketRow[]): Promise<string | undefined> {
    return this.#table.step(() => {
      const rows = read();
      const nowMs = this.#clock();
      for (const { entityId, resource, bucket } of rows) {
        const usage = bucket.lastUsage(nowMs);
        if (usage === undefined) continue;
        this.#table.countUsage(entityId, resource, usage);
        bucket.markCounted(bucket.usageHour);
        this.#table.set(entityId, resource, bucket);
      }
      return rows.at(-1)?.entityId;
    }, undefined);
  }
}
