/** Limiters in four processes on one bucket in one SQLite file. */

import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, test } from "vitest";
import { allowed } from "./contention/hammer.ts";
import { Child, SCRIPTS } from "./sqlite/child.ts";
import { race } from "./sqlite/race.ts";

const CAPACITY = 100;
const PER_SECOND = 50;
const DURATION_MS = 1000;

/** Report of a child; times are of the day, because the children share no other clock. */
interface Taken {
  readonly granted: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

const build = builtSources();
const directory = temporaryFolder();

test("limiters in 4 processes grant all of a full bucket and no more than its limit", async () => {
  const url = `sqlite:${join(directory, "limits.db")}`;
  const repo = await Repository.open(url);
  await repo.limits.setSystem([`rps:${PER_SECOND}/sec:${CAPACITY}`]);
  const children = Array.from(
    { length: 4 },
    () => new Child(SCRIPTS.take, [build.index, url, String(DURATION_MS)]),
  );
  const answers = (await race(children)) as Taken[];
  const granted = answers.reduce((sum, answer) => sum + answer.granted, 0);
  const startedAt = Math.min(...answers.map((answer) => answer.startedAt));
  const elapsedMs = Math.max(...answers.map((answer) => answer.endedAt)) - startedAt;
  const [state] = await repo.buckets.list("hot");
  await repo.close();
  const most = allowed(CAPACITY, PER_SECOND, { elapsedMs });
  expect(state?.totalConsumed).toBe(granted);
  expect(granted).toBeLessThanOrEqual(most);
  expect(granted).toBeGreaterThanOrEqual(CAPACITY);
});
