/** Copies between stores of all kinds, with generated contents. */

import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { copyStore } from "@zae-limiter/limiter/transfer/copy-store.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, describe, expect, test } from "vitest";
import {
  openFile,
  openItems,
  openMemory,
  openPostgres,
  openRedis,
  openTable,
} from "../limiter/limiter-stores.ts";
import { fill, MovedClock, resumeQuota } from "./filled-store.ts";
import { expectSame } from "./same-stores.ts";

type Place = Awaited<ReturnType<typeof openFile>>;
type Open = () => Promise<Place>;

const SEEDS = Array.from({ length: casesOf(3) }, (_, at) => at + 1);

/** Declares copies from one kind of store to another, one for each seed. */
function copies(title: string, openSource: Open, openTarget: Open): void {
  describe(title, () => {
    const opened: Promise<Place>[] = [];
    const place = (open: Open) => {
      const opening = open();
      opened.push(opening);
      return opening;
    };
    afterAll(async () => {
      for (const each of opened) await (await each).close();
    });

    test.each(SEEDS)("everything arrives, with the seed %i", async (seed) => {
      const time = new MovedClock();
      const options = { clock: time.clock, timeoutMs: 20_000 };
      const [source, target] = [await place(openSource), await place(openTarget)];
      const namespace = newName();
      const from = await source.open({ ...options, namespace });
      const ids = await fill(from, { seed, time, items: source.items });
      const to = await target.open({ ...options, namespace: newName() });
      const report = await copyStore(from, to, { namespaces: [namespace], principal: "ops" });
      expect(report.namespaces[0]?.differences).toEqual([]);
      expect(report.same).toBe(true);
      const copy = await to.namespace(namespace);
      await expectSame(from, copy, ids, time);
      expect(await resumeQuota(copy)).toBe(await resumeQuota(from));
      const events = await copy.audit.list("$SYSTEM");
      const copied = events.filter(({ action }) => action === "store_copied");
      expect(copied).toMatchObject([{ principal: "ops" }]);
      await Promise.all([from.close(), to.close()]);
    });
  });
}

const items = () => openItems(overTable);

describe("a copy of a store", () => {
  copies("from memory to a SQLite file", openMemory, openFile);
  copies("from a SQLite file to memory", openFile, openMemory);
  copies("from a SQLite file to another", openFile, openFile);
  copies("from a SQLite file to a table on DynamoDB, in memory", openFile, items);
  copies("from a table on DynamoDB, in memory, to a SQLite file", items, openFile);
  copies("from a table on DynamoDB, in memory, to another", items, items);
  copies("from a SQLite file to an item store of the caller's", openFile, () =>
    openItems(Repository.over),
  );
});

describePostgres("a copy of a store", (url) => {
  const postgres = () => openPostgres(url);
  copies("from a SQLite file", openFile, postgres);
  copies("to a SQLite file", postgres, openFile);
  copies("to another schema", postgres, postgres);
  copies("to a table on DynamoDB, in memory", postgres, items);
  copies("from a table on DynamoDB, in memory", items, postgres);
});

describeRedis("a copy of a store", (url) => {
  const redis = () => openRedis(url);
  copies("from a SQLite file", openFile, redis);
  copies("to a SQLite file", redis, openFile);
  copies("to another prefix", redis, redis);
  copies("to a table on DynamoDB, in memory", redis, items);
  copies("from a table on DynamoDB, in memory", items, redis);

  describePostgres("a copy between two servers", (postgresUrl) => {
    const postgres = () => openPostgres(postgresUrl);
    copies("to Redis", postgres, redis);
    copies("to PostgreSQL", redis, postgres);
  });
});

describeEngines("a copy of a store", (engine) => {
  copies("from a SQLite file", openFile, () => openTable(engine));
  copies("to a SQLite file", () => openTable(engine), openFile);
});
