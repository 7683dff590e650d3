/** Processes that open and write one SQLite file at the same time. */

import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { describe, expect, test } from "vitest";
import { Child, SCRIPTS } from "./sqlite/child.ts";
import { race } from "./sqlite/race.ts";

const DURATION_MS = 500;

const build = builtSources();
const directory = temporaryFolder();

describe("processes on one file", () => {
  test.each([2, 4])(
    "%i processes that count in one item lose no count, and each has its turn",
    async (processes) => {
      const path = join(mkdtempSync(join(directory, "count-")), "limits.db");
      const children = Array.from(
        { length: processes },
        () => new Child(SCRIPTS.count, [build.open, path, String(DURATION_MS)]),
      );
      const answers = (await race(children)) as { count: number }[];

      const { store } = await openSqlite({ path });
      const item = await store.get({ PK: "counter", SK: "#" });
      await store.close();
      const total = answers.reduce((sum, { count }) => sum + count, 0);
      expect(item?.count).toBe(total);
      expect(Math.min(...answers.map(({ count }) => count))).toBeGreaterThan(0);
    },
  );

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
