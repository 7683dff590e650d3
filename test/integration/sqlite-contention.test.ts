/**
 * Real processes on one file. These tests take wall-clock time by nature; the bound they check is
 * loose, because the machine of a test has other things to do, and the worst wait is printed.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/storage/sqlite/open.ts";
import { builtSources } from "./sqlite/build.ts";
import { Child, SCRIPTS } from "./sqlite/child.ts";
import { race } from "./sqlite/race.ts";

const DURATION_MS = process.env["ZAEL_SOAK"] === undefined ? 1000 : 5000;
/** On a quiet machine it is below 100 ms. */
const WAIT_MS_MAX = 1000;

const build = builtSources();
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "zae-limiter-"));
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

// Once more when it fails: the machine may have been busy with something else.
describe("wall-clock", { retry: 1 }, () => {
  test.each([2, 4])("%i processes count one item: exact, and nobody starves", async (processes) => {
    const path = join(mkdtempSync(join(directory, "count-")), "limits.db");
    const children = Array.from(
      { length: processes },
      () => new Child(SCRIPTS.count, [build.open, path, String(DURATION_MS)]),
    );
    const answers = (await race(children)) as { count: number; waitMsMax: number }[];

    const { store } = await openSqlite({ path });
    const item = await store.get({ PK: "counter", SK: "#" });
    await store.close();
    const total = answers.reduce((sum, { count }) => sum + count, 0);
    const waitMsMax = Math.max(...answers.map((answer) => answer.waitMsMax));
    const perSecond = Math.round((total * 1000) / DURATION_MS);
    console.info(
      `${processes} processes: ${perSecond} updates/s, worst wait ${waitMsMax.toFixed(1)} ms`,
    );
    expect(item?.count).toBe(total);
    expect(waitMsMax).toBeLessThan(WAIT_MS_MAX);
    // Turns are taken: nobody gets by with a small part of what is fair.
    const least = Math.min(...answers.map(({ count }) => count));
    expect(least).toBeGreaterThan(total / processes / 4);
  });

  test("processes that open fresh files at once all succeed", async () => {
    const fresh = mkdtempSync(join(directory, "fresh-"));
    const paths = Array.from({ length: 20 }, (_, at) => join(fresh, "folder", `${at}.db`));
    const names = ["first", "second", "third"];
    const children = names.map((name) => new Child(SCRIPTS.open, [build.open, name, ...paths]));
    expect(await race(children)).toStrictEqual(names.map(() => "done"));
    for (const path of paths) {
      const { store } = await openSqlite({ path });
      const items = await store.getMany(names.map((SK) => ({ PK: "opened", SK })));
      expect(items.map((item) => item?.SK)).toStrictEqual(names);
      await store.close();
    }
  });
});
