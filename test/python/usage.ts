/** Usage on a shared table: the aggregator of either library, on what both consume. */

import { createHandler } from "@zae-limiter/aws/aggregator/lambda.ts";
import type { LambdaRecord } from "@zae-limiter/aws/aggregator/lambda-event.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { expect, it } from "vitest";
import type { Both, SharedTable } from "./shared-table.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };

export function itCountsUsage(table: SharedTable): void {
  /** Both libraries consume by turns: 1 + 2 + 3 + 4 tokens. */
  async function consumed(): Promise<Both> {
    const both = await table.open();
    await both.repo.limits.setResource(R, ["rpd:100/day"]);
    await both.limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    await both.python.acquire(E, R, { rpd: 2 });
    await both.limiter.acquire({ ...CALL, consume: { rpd: 3 } });
    await both.python.acquire(E, R, { rpd: 4 });
    return both;
  }

  /** Hourly tokens and events, as each library reads them. */
  async function readByBoth({ repo, python }: Both) {
    const { snapshots } = await repo.usage.snapshots({ entityId: E, window: "hourly" });
    const [theirs] = await python.repo<[PythonSnapshot[], unknown]>("get_usage_snapshots", [], {
      entity_id: E,
      resource: R,
      window_type: "hourly",
    });
    const ours = snapshots.map(({ counters, totalEvents }) => [counters["rpd"], totalEvents]);
    return { ours, theirs: theirs.map((one) => [one.counters["rpd"], one.total_events]) };
  }

  it("Python's aggregator counts what both consume, and both read it", async () => {
    const both = await consumed();
    const before = await both.limiter.status(CALL);
    await aggregateByPython(table, both);
    // It does not count the write that creates a bucket: the token of the first acquire.
    expect(await readByBoth(both)).toEqual({ ours: [[9, 3]], theirs: [[9, 3]] });
    const another = await table.another(both);
    expect((await another.status(CALL)).map(({ available }) => available)).toEqual(
      before.map(({ available }) => available),
    );
    expect(await table.shards(both, E, R)).toHaveLength(1);
  });

  it("our aggregator counts the same records in full, and both read it", async () => {
    const both = await consumed();
    await aggregateByOurs(table, both);
    await aggregateByOurs(table, both);
    expect(await readByBoth(both)).toEqual({ ours: [[10, 4]], theirs: [[10, 4]] });
  });
}

/** The Lambda handler of ours, with what the stream says about the namespace. */
export async function aggregateByOurs(table: SharedTable, both: Both): Promise<void> {
  const handler = createHandler({
    table: table.place.table,
    store: table.items,
    clock: systemClock,
    log: () => {},
    retentionDays: 90,
  });
  const Records = (await table.bucketRecords(both)) as LambdaRecord[];
  expect(await handler({ Records })).toEqual({ batchItemFailures: [] });
}

/** Aggregates usage with the handler of Python. */
export async function aggregateByPython(table: SharedTable, both: Both): Promise<void> {
  const { errors } = await both.python.aggregate(table.place, await table.bucketRecords(both));
  expect(errors).toEqual([]);
}

interface PythonSnapshot {
  readonly counters: Readonly<Record<string, number>>;
  readonly total_events: number;
}
