import { spentNote } from "@zae-limiter/cli/store/spent-note.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { expect, test } from "vitest";

const QUOTA = [Limit.parse("rpm:10"), Limit.parse("req:10/day UTC")];

test("a change of a quota says when processes follow that have seen it spent", async () => {
  const shared = await Repository.over(new MemoryItemStore());
  expect(spentNote(shared, QUOTA)).toBe(
    "Processes that have seen the limit spent follow within 30 seconds",
  );
  expect(spentNote(shared, QUOTA.slice(0, 1))).toBeUndefined();
  await shared.close();
  const here = await Repository.open("memory:");
  expect(spentNote(here, QUOTA)).toBeUndefined();
  await here.close();
});
