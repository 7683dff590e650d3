/** Steps on a row that warm calls change all the time, and on one that another step holds. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";
import type { Cell, Commit, CommitResult } from "@zae-limiter/limiter/storage/item-table.ts";
import { ITEM_TABLE, type ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import { OptimisticSteps } from "@zae-limiter/limiter/storage/optimistic-steps.ts";
import type { ListedRows } from "@zae-limiter/limiter/storage/step-table.ts";
import {
  WARM_BUCKETS,
  WARM_ROW,
  type WarmHold,
  warmRowIn,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { expect, test } from "vitest";

const KEY = { PK: "n/ROW#user", SK: "#ROW#api" };
const NEVER_MS = 1e15;
const BEGUN_MS = 1_900_000_000_000;

/** A row that a warm call changes after each read, as long as it is warm. */
class BusyRow {
  nowMs = BEGUN_MS;
  until = NEVER_MS;
  revision = 0;
  readonly commits: CommitResult[] = [];
  readonly holds: WarmHold[] = [];

  get item(): Item {
    return { ...KEY, n: 0, [WARM_ROW]: { until: this.until } as unknown as Value };
  }

  read = async (): Promise<readonly Cell[]> => {
    const cell = { key: KEY, item: this.item, revision: String(this.revision) };
    if (this.until > this.nowMs) this.revision += 1;
    return [cell];
  };

  commit = async ({ reads, writes }: Commit): Promise<CommitResult> => {
    const isSame = reads.every(({ revision }) => revision === String(this.revision));
    if (isSame) {
      this.revision += 1;
      this.until = warmRowIn(writes[0]?.after)?.until ?? this.until;
    }
    this.commits.push(isSame ? "done" : "changed");
    return isSame ? "done" : "changed";
  };

  hold = async (hold: WarmHold): Promise<boolean> => {
    this.holds.push(hold);
    if (this.until <= -hold.nowMs) return false;
    this.until = -hold.endMs;
    this.revision += 1;
    return true;
  };

  /** Returns steps whose pauses make the time pass. */
  steps(): OptimisticSteps {
    const { read, commit, hold } = this;
    const table = { [ITEM_TABLE]: true, [WARM_BUCKETS]: { hold }, read, commit };
    const timer: Timer = {
      nowMs: () => this.nowMs,
      sleep: async (ms) => {
        this.nowMs += ms;
      },
    };
    const clock = () => this.nowMs;
    const options = { clock, timer, random: () => 0.5, timeoutMs: 5000 };
    return new OptimisticSteps(table as unknown as ItemTable, options);
  }
}

const warm = { until: NEVER_MS } as unknown as Value;

function writeWarm(rows: ListedRows): void {
  rows.get(KEY);
  rows.setUnlogged(KEY, { ...KEY, n: 1, [WARM_ROW]: warm });
}

test("a step on a row that warm calls change all the time holds it, and is done", async () => {
  const row = new BusyRow();
  await row.steps().step(writeWarm, { keys: [KEY] });
  expect(row.commits.at(-1)).toBe("done");
  expect(row.commits.length).toBeLessThan(10);
  expect(row.holds).toHaveLength(1);
  expect(row.until).toBe(NEVER_MS);
});

test("a step that holds a row and then writes nothing lets it go", async () => {
  const row = new BusyRow();
  await row.steps().step(
    (rows) => {
      const isWarm = (warmRowIn(rows.get(KEY))?.until ?? 0) > 0;
      if (isWarm) rows.setUnlogged(KEY, { ...KEY, n: 1, [WARM_ROW]: warm });
    },
    { keys: [KEY] },
  );
  expect(row.commits).not.toContain("done");
  expect(row.holds).toHaveLength(2);
  const taken = await row.hold({ key: KEY, nowMs: row.nowMs, endMs: row.nowMs + 1 });
  expect(taken).toBe(true);
});

test("a step leaves a row alone that another one holds, until that is over", async () => {
  const row = new BusyRow();
  const endMs = BEGUN_MS + 300;
  row.until = -endMs;
  await row.steps().step(writeWarm, { keys: [KEY] });
  expect(row.commits).toEqual(["done"]);
  expect(row.nowMs).toBeGreaterThanOrEqual(endMs);
  // Those of a step that waits are refused as long as the other one holds the row.
  for (const { nowMs } of row.holds) expect(nowMs).toBeLessThan(endMs);
});
