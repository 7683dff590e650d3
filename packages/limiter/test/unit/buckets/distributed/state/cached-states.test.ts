/** Predictions of a client about a bucket while its writes are in flight. */

import {
  decoded,
  type SeenBucket,
} from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import {
  type CachedState,
  CachedStates,
} from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { configOf, KEY, Table } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

const ID = "bucket";

/** A bucket that holds nine of ten, as the store has shown it. */
async function seen(): Promise<{ states: CachedStates; table: Table; shown: SeenBucket }> {
  const table = new Table();
  await table.client().take(configOf(["a:10/day"]), { a: 1000 });
  const states = new CachedStates();
  const shown = decoded(await table.items.get(KEY)) as SeenBucket;
  states.observe(ID)(shown, table.nowMs);
  return { states, table, shown };
}

/** A write that takes one is sent; the result says that it has not been. */
function send(states: CachedStates): () => void {
  const { bucket } = states.get(ID) as CachedState & { bucket: SeenBucket };
  const { tokensMilli, remainder } = bucket.limits.get("a") ?? { tokensMilli: 0, remainder: 0 };
  const after = [{ limitName: "a", tokensMilli: tokensMilli - 1000, remainder }];
  const unpredict = states.predict(ID, bucket, after);
  return () => unpredict(new Map([["a", 1000]]));
}

const left = (states: CachedStates) => states.get(ID)?.bucket?.limits.get("a")?.tokensMilli;

describe("takes that have not been", () => {
  test.each([
    ["the first comes back first", [0, 1, 2]],
    ["the last comes back first", [2, 1, 0]],
    ["they come back in any order", [1, 2, 0]],
  ])("a consume that did not happen leaves nothing behind: %s", async (_, order) => {
    const { states } = await seen();
    const undo = [send(states), send(states), send(states)];
    expect(left(states)).toBe(6000);
    for (const at of order) undo[at]?.();
    expect(left(states)).toBe(9000);
  });

  test("a consume that did not happen leaves those alone that may still be", async () => {
    const { states } = await seen();
    const [first] = [send(states), send(states)];
    first?.();
    expect(left(states)).toBe(8000);
  });

  test("a consume that did not happen changes nothing of what the store has shown since", async () => {
    const { states, table, shown } = await seen();
    const undo = send(states);
    states.observe(ID)(shown, table.nowMs + 1);
    undo();
    expect(left(states)).toBe(9000);
    expect(states.get(ID)?.seenAtMs).toBe(table.nowMs + 1);
  });

  test("a consume that did not happen changes no result of what the store has shown since", async () => {
    const { states, table, shown } = await seen();
    const undo = send(states);
    states.observe(ID)(shown, table.nowMs + 1);
    send(states);
    undo();
    expect(left(states)).toBe(8000);
  });

  test("a consume that did not happen changes nothing where none was predicted", async () => {
    const { states, shown } = await seen();
    const unpredict = states.predict(ID, shown, []);
    send(states);
    unpredict(new Map([["a", 3000]]));
    expect(left(states)).toBe(8000);
  });
});
