/** Copies that are interrupted, refused, or made while the source is in use. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { CopyRefusedError } from "@zae-limiter/limiter/domain/errors/copy-refused.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { type CopyOptions, copyStore } from "@zae-limiter/limiter/transfer/copy-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { fill, MovedClock } from "./filled-store.ts";
import { balancesOf, expectSame } from "./same-stores.ts";

type Writes = Parameters<ItemStore["writeMany"]>[0];

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-copy-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
function newFile(): string {
  files += 1;
  return `sqlite:${join(folder, `${files}.db`)}`;
}

let time: MovedClock;
let from: Repository;
let to: Repository;
let ids: string[];
/** Called before the target writes; it may fail, or leave something out. */
let beforeWrite: (writes: Writes) => Writes | Promise<Writes>;

beforeEach(async () => {
  time = new MovedClock();
  const options = { clock: time.clock };
  beforeWrite = (writes) => writes;
  from = await Repository.open("memory:", options);
  to = await overTable(hooked(new MemoryItemStore(options)), options);
  ids = await fill(from, { seed: 7, time, calls: 20 });
});
afterEach(() => Promise.all([from.close(), to.close()]));

/** Returns a store whose writes pass the hook. */
function hooked(items: ItemStore): ItemStore {
  return new Proxy(items, {
    get: (store, name) => {
      if (name === "writeMany") {
        return async (writes: Writes) => store.writeMany(await beforeWrite(writes));
      }
      const member = Reflect.get(store, name) as unknown;
      return typeof member === "function" ? member.bind(store) : member;
    },
  });
}

const copy = (options: CopyOptions = {}) => copyStore(from, to, options);
const consume = (repo: Repository, rpm: number) =>
  new RateLimiter(repo).acquire({
    entityId: "late",
    resource: "api",
    limits: ["rpm:100"],
    consume: { rpm },
  });

/** Expects a refusal for a reason. */
async function expectRefused(copying: Promise<unknown>, reason: string): Promise<void> {
  const error = await copying.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CopyRefusedError);
  expect(error).toMatchObject({ code: "ZAEL_COPY_REFUSED", reason });
}

describe("a copy that is interrupted", () => {
  test("a copy whose target fails goes on with the same call, and ends the same", async () => {
    let writes = 0;
    beforeWrite = (given) => {
      writes += 1;
      if (writes === 2) throw new Error("the process was killed");
      return given;
    };
    await expect(copy()).rejects.toThrow("the process was killed");
    const report = await copy();
    expect(report).toMatchObject({ same: true, namespaces: [{ resumed: true }] });
    await expectSame(from, to, ids, time);
    await expectRefused(copy(), "target-has-data");
  });

  test("an aborted copy stops between two batches, and goes on later", async () => {
    const controller = new AbortController();
    const reason = new Error("Ctrl-C");
    const onProgress = ({ phase }: { phase: string }) => {
      if (phase === "copy") controller.abort(reason);
    };
    await expect(copy({ signal: controller.signal, onProgress })).rejects.toBe(reason);
    const { namespaces } = await copy();
    expect(namespaces[0]).toMatchObject({ resumed: true, differing: 0 });
    await expectSame(from, to, ids, time);
  });

  test("the second run writes only what the first one has not", async () => {
    const { signal } = new AbortController();
    const [first] = (await copy({ live: true, signal })).namespaces;
    const [second] = (await copy()).namespaces;
    expect(first?.written).toBeGreaterThan(20);
    expect(second?.written).toBe(0);
  });
});

describe("a source that is in use", () => {
  test("a change during the copy is refused, and counted once after the repetition", async () => {
    let isFirst = true;
    beforeWrite = async (writes) => {
      if (isFirst) await consume(from, 5);
      isFirst = false;
      return writes;
    };
    await expectRefused(copy(), "source-changed");
    expect(await copy()).toMatchObject({ same: true });
    await expectSame(from, to, [...ids, "late"], time);
    expect((await to.usage.summary({ entityId: "late" })).total).toEqual({ rpm: 5 });
  });

  test("a live copy takes a change along in its second pass, and stays open", async () => {
    let writes = 0;
    beforeWrite = async (given) => {
      writes += 1;
      if (writes === 1) await consume(from, 5);
      return given;
    };
    expect(await copy({ live: true })).toMatchObject({ same: true });
    await consume(from, 7);
    await from.entities.delete(ids[4] as string);
    const report = await copy();
    expect(report).toMatchObject({ same: true, namespaces: [{ resumed: true }] });
    await expectSame(from, to, [...ids, "late"], time);
    expect(await to.entities.get(ids[4] as string)).toBeUndefined();
    await expectRefused(copy(), "target-has-data");
  });
});

describe("a target that must not be written to", () => {
  test("a target with data of the namespace is refused, and stays as it is", async () => {
    await to.limits.setSystem(["rpm:1"]);
    await expectRefused(copy(), "target-has-data");
    expect(String((await to.limits.getSystem()).limits)).toBe("rpm:1/min");
    expect((await to.audit.listAll()).length).toBe(1);
  });

  test("a target that limiters have used since a live copy is refused", async () => {
    await copy({ live: true });
    time.nowMs += 5000;
    await consume(to, 3);
    const before = await balancesOf(to, ["late"]);
    await expectRefused(copy(), "target-in-use");
    expect(await balancesOf(to, ["late"])).toEqual(before);
  });

  test("a copy that is not at its end is no source", async () => {
    await copy({ live: true });
    const third = await Repository.open("memory:");
    await expectRefused(copyStore(to, third), "source-unfinished");
    await third.close();
  });

  test("a store is not copied to itself, however it is named", async () => {
    await expectRefused(copyStore(from, from), "same-store");
    const url = newFile();
    await (await Repository.open(url)).close();
    const other = url.replace(folder, `${folder}/../${folder.split("/").at(-1)}`);
    await expectRefused(copyStore(url, other), "same-store");
  });

  test("no namespace is written when one of them is refused", async () => {
    await from.namespaces.register("a");
    await to.limits.setSystem(["rpm:1"]);
    await expectRefused(copy({ namespaces: ["a", "default"] }), "target-has-data");
    expect(await to.namespaces.get("a")).toBeUndefined();
  });
});

describe("the ids of namespaces", () => {
  test("a namespace keeps its id in a store that has neither its name nor its id", async () => {
    await from.namespaces.register("tenant");
    const { namespaces } = await copy({ namespaces: ["tenant"] });
    expect(namespaces[0]?.toId).toBe(namespaces[0]?.fromId);
  });

  test("a namespace that the target has registered gets its keys under the id there", async () => {
    const { namespaces } = await copy();
    expect(namespaces[0]).toMatchObject({ fromId: from.namespaceId, toId: to.namespaceId });
    expect(to.namespaceId).not.toBe(from.namespaceId);
    await expectSame(from, to, ids, time);
  });

  test("the id of a namespace that was purged in the target is not used again", async () => {
    const { tenant: id } = await from.namespaces.register("tenant");
    await copy({ namespaces: ["tenant"] });
    await to.namespaces.delete("tenant");
    await to.namespaces.purge(id as string);
    const { namespaces, same } = await copy({ namespaces: ["tenant"] });
    expect(same).toBe(true);
    expect(namespaces[0]?.toId).not.toBe(id);
  });
});

describe("the report of a copy", () => {
  test("a row that did not arrive is named, and the copy stays open", async () => {
    const resolved = `ENTITY#${ids[0]}`;
    beforeWrite = ({ puts = [], ...others }) => ({
      ...others,
      puts: puts.filter(({ PK, SK }) => !(PK.endsWith(resolved) && SK === "#META")),
    });
    const report = await copy();
    expect(report.same).toBe(false);
    expect(report.namespaces[0]?.differences).toEqual([
      { kind: "entities", name: `${to.namespaceId}/${resolved} #META`, difference: "missing" },
    ]);
    beforeWrite = (writes) => writes;
    expect(await copy()).toMatchObject({ same: true, namespaces: [{ written: 1 }] });
  });

  test("a dry run counts what there is, and writes nothing to either side", async () => {
    const url = newFile();
    const dry = await copyStore(from, url, { dryRun: true });
    expect(dry.namespaces[0]?.counts.entities).toBe(5);
    await expect(copyStore(url, to)).rejects.toThrow(ValidationError);
    expect((await to.audit.listAll()).length).toBe(0);
  });

  test("progress goes from counting to copying to comparing, and each reaches its total", async () => {
    const last = new Map<string, readonly [number, number]>();
    await copy({ onProgress: ({ phase, done, total }) => last.set(phase, [done, total]) });
    expect([...last.keys()]).toEqual(["survey", "copy", "compare"]);
    const [done, total] = last.get("compare") ?? [];
    expect(done).toBe(total);
  });
});

describe("addresses and options of a copy", () => {
  test.each([
    ["memory:", "sqlite:x.db", "a store that lasts"],
    ["sqlite:nowhere.db", "sqlite:x.db", "not there"],
    ["nope", "sqlite:x.db", "expected memory:"],
    [7, "sqlite:x.db", "an open repository"],
  ])("a copy from %j to %j is refused with what was expected", async (one, other, expected) => {
    await expect(copyStore(one as string, other)).rejects.toThrow(expected);
  });

  test.each<[object, string]>([
    [{ live: 1 }, "expected true or false"],
    [{ namespaces: [] }, "at least one"],
    [{ namespaces: ["unknown"] }, "unknown"],
    [{ lives: true }, "lives"],
    [{ onProgress: 1 }, "a function"],
  ])("the options %j are refused", async (options, expected) => {
    await expect(copy(options as CopyOptions)).rejects.toThrow(expected);
  });

  test("an address of a target must not name a namespace", async () => {
    await expect(copyStore(from, `${newFile()}?namespace=a`)).rejects.toThrow("keeps the name");
  });

  test("addresses are opened and closed, and the namespace of the source is copied alone", async () => {
    const [one, other] = [newFile(), newFile()];
    const repo = await Repository.open(one, { namespace: "a" });
    await repo.limits.setSystem(["rpm:7"]);
    await repo.close();
    const { namespaces } = await copyStore(`${one}?namespace=a`, other);
    expect(namespaces.map(({ name }) => name)).toEqual(["a"]);
    const copied = await Repository.open(other, { namespace: "a" });
    expect(String((await copied.limits.getSystem()).limits)).toBe("rpm:7/min");
    await copied.close();
  });
});
