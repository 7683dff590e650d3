/** What a client assumes of a bucket while its writes are under way. */

import { describe, expect, test } from "vitest";
import type { SeenBucket } from "../../../src/buckets/distributed/image.ts";
import { decoded } from "../../../src/buckets/distributed/image.ts";
import { type View, Views } from "../../../src/buckets/distributed/views.ts";
import { configOf, KEY, Table } from "./table.ts";

const ID = "bucket";

/** A bucket that holds nine of ten, as the store has shown it. */
async function seen(): Promise<{ views: Views; table: Table; shown: SeenBucket }> {
  const table = new Table();
  await table.client().take(configOf(["a:10/day"]), { a: 1000 });
  const views = new Views();
  const shown = decoded(await table.items.get(KEY)) as SeenBucket;
  views.watch(ID)(shown, table.nowMs);
  return { views, table, shown };
}

/** A write that takes one is sent; the result says that it has not been. */
function send(views: Views): () => void {
  const { bucket } = views.get(ID) as View & { bucket: SeenBucket };
  const { tokensMilli, remainder } = bucket.limits.get("a") ?? { tokensMilli: 0, remainder: 0 };
  const after = [{ limitName: "a", tokensMilli: tokensMilli - 1000, remainder }];
  const unexpect = views.expect(ID, bucket, after);
  return () => unexpect(new Map([["a", 1000]]));
}

const left = (views: Views) => views.get(ID)?.bucket?.limits.get("a")?.tokensMilli;

describe("takes that have not been", () => {
  test.each([
    ["the first comes back first", [0, 1, 2]],
    ["the last comes back first", [2, 1, 0]],
    ["they come back in any order", [1, 2, 0]],
  ])("leave nothing behind: %s", async (_, order) => {
    const { views } = await seen();
    const undo = [send(views), send(views), send(views)];
    expect(left(views)).toBe(6000);
    for (const at of order) undo[at]?.();
    expect(left(views)).toBe(9000);
  });

  test("leave those alone that may still be", async () => {
    const { views } = await seen();
    const [first] = [send(views), send(views)];
    first?.();
    expect(left(views)).toBe(8000);
  });

  test("change nothing of what the store has shown since", async () => {
    const { views, table, shown } = await seen();
    const undo = send(views);
    views.watch(ID)(shown, table.nowMs + 1);
    undo();
    expect(left(views)).toBe(9000);
    expect(views.get(ID)?.seenAtMs).toBe(table.nowMs + 1);
  });

  test("change nothing that was worked out from what the store has shown since", async () => {
    const { views, table, shown } = await seen();
    const undo = send(views);
    views.watch(ID)(shown, table.nowMs + 1);
    send(views);
    undo();
    expect(left(views)).toBe(8000);
  });

  test("change nothing where they were not expected to take anything", async () => {
    const { views, shown } = await seen();
    const unexpect = views.expect(ID, shown, []);
    send(views);
    unexpect(new Map([["a", 3000]]));
    expect(left(views)).toBe(8000);
  });
});
