/**
 * How close clients and processes come to a limit they share, and how fairly they share a file.
 * Both depend on the machine, so these tests have it to themselves: `npm run soak:contention`.
 */

import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/index.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { delayingProxy } from "@zae-limiter/test-support/delaying-proxy.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ContendedTable } from "../integration/contention/contended-table.ts";
import { allowed, type Hammered, hammer } from "../integration/contention/hammer.ts";
import { Child, SCRIPTS } from "../integration/sqlite/child.ts";
import { race } from "../integration/sqlite/race.ts";

const CAPACITY = 100;
const PER_SECOND = 50;
const LIMIT = `rps:${PER_SECOND}/sec:${CAPACITY}`;
const DURATION_MS = 5000;
const SHARE_MIN = 0.97;
/** On a quiet machine it is below 100 ms. */
const WAIT_MS_MAX = 1000;

function nearlyAll(what: string, hammered: Pick<Hammered, "granted" | "elapsedMs">): void {
  const most = allowed(CAPACITY, PER_SECOND, hammered);
  const share = hammered.granted / most;
  console.info(`${what}: ${hammered.granted} of ${Math.floor(most)}`);
  expect(share).toBeLessThanOrEqual(1);
  expect(share).toBeGreaterThanOrEqual(SHARE_MIN);
}

// DynamoDB Local is too slow to grant nearly all of such a limit.
describeEngine("dynoxide", "clients of one limit", (engine: RunningEngine) => {
  let table: ContendedTable;

  beforeAll(async () => {
    table = await ContendedTable.create(engine, LIMIT);
  });

  afterAll(() => table[Symbol.asyncDispose]());

  test("32 clients on one bucket are granted nearly all of its limit", async () => {
    const limiters = await table.clients(32);
    nearlyAll("one bucket", await hammer(limiters, () => "hot", DURATION_MS));
  });

  test("32 children of one parent are granted nearly all of the parent's limit", async () => {
    const children = Array.from({ length: 32 }, (_, at) => `child-${at}`);
    await table.family("parent", LIMIT, children);
    const limiters = await table.clients(32);
    const hammered = await hammer(limiters, (client) => `child-${client}`, DURATION_MS);
    nearlyAll("through a parent", hammered);
  });

  test("16 clients behind 5 ms of network are granted nearly all of the limit", async () => {
    const proxy = await delayingProxy(engine.endpoint, 2.5);
    try {
      const limiters = await table.clients(16, proxy.endpoint);
      nearlyAll("5 ms away", await hammer(limiters, () => "distant", DURATION_MS));
      await Promise.all(limiters.map((limiter) => limiter.close()));
    } finally {
      await proxy.close();
    }
  });
});

describe("processes on one file", () => {
  const build = builtSources();
  const directory = temporaryFolder();

  test("4 processes on one bucket are granted nearly all of its limit", async () => {
    const url = `sqlite:${join(directory, "limits.db")}`;
    const repo = await Repository.open(url);
    await repo.limits.setSystem([LIMIT]);
    const start = () => new Child(SCRIPTS.take, [build.index, url, String(DURATION_MS)]);
    type Taken = { granted: number; startedAt: number; endedAt: number };
    const answers = (await race(Array.from({ length: 4 }, start))) as Taken[];
    await repo.close();
    const granted = answers.reduce((sum, answer) => sum + answer.granted, 0);
    const startedAt = Math.min(...answers.map((answer) => answer.startedAt));
    const elapsedMs = Math.max(...answers.map((answer) => answer.endedAt)) - startedAt;
    nearlyAll("sqlite, 4 processes", { granted, elapsedMs });
  });

  test.each([2, 4])("%i processes that write one item take turns", async (processes) => {
    const path = join(mkdtempSync(join(directory, "count-")), "limits.db");
    const start = () => new Child(SCRIPTS.count, [build.open, path, String(DURATION_MS)]);
    const children = Array.from({ length: processes }, start);
    const answers = (await race(children)) as { count: number; waitMsMax: number }[];
    const total = answers.reduce((sum, { count }) => sum + count, 0);
    const waitMsMax = Math.max(...answers.map((answer) => answer.waitMsMax));
    const perSecond = Math.round((total * 1000) / DURATION_MS);
    console.info(
      `${processes} processes: ${perSecond} updates/s, worst wait ${waitMsMax.toFixed(1)} ms`,
    );
    expect(waitMsMax).toBeLessThan(WAIT_MS_MAX);
    const least = Math.min(...answers.map(({ count }) => count));
    expect(least).toBeGreaterThan(total / processes / 4);
  });
});
