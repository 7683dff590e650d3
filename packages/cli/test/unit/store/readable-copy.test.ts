/** A file that may only be read: commands that read it work on a copy. */

import { chmodSync, existsSync, readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { isWritable, readableCopy } from "@zae-limiter/cli/store/open-store.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect, test } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();

test("a copy has what is still in the log of a file that another process has open", async () => {
  const writer = await Repository.open(store.url);
  await writer.limits.setSystem(["rpm:7"]);
  expect(existsSync(`${store.path}-wal`)).toBe(true);
  const copy = readableCopy(store.path);
  const reader = await Repository.open(`sqlite:${copy.path}`);
  expect((await reader.limits.getSystem()).limits.map(String)).toEqual(["rpm:7/min"]);
  await reader.close();
  await writer.close();
  copy.remove();
  expect(existsSync(dirname(copy.path))).toBe(false);
});

test("a copy may be written, whatever its file allows: reading usage counts in it", async () => {
  const writer = await Repository.open(store.url);
  chmodSync(store.path, 0o444);
  const copy = readableCopy(store.path);
  chmodSync(store.path, 0o644);
  await writer.close();
  expect(statSync(copy.path).mode & 0o777).toBe(0o600);
  copy.remove();
});

test("a file that is not there cannot be copied, and nothing is left of the attempt", () => {
  expect(() => readableCopy(`${store.folder}/none.db`)).toThrow(/ENOENT/);
});

test("a file that may be written is recognised", () => {
  expect(isWritable(store.folder)).toBe(true);
  expect(isWritable(`${store.folder}/none.db`)).toBe(false);
});

// The superuser may write everything.
itUnless(process.getuid?.() === 0 && "root may write everywhere")(
  "peek works where nothing may be written",
  async () => {
    const { run, under } = store.namespace();
    await run("system", "set-defaults", "-l", "rpm:9");
    const before = readdirSync(store.folder);
    chmodSync(store.path, 0o444);
    chmodSync(store.folder, 0o555);
    const seen = await under({}, "peek", "key-1", "gpt-4");
    chmodSync(store.folder, 0o755);
    chmodSync(store.path, 0o644);
    expect(seen).toMatchObject({ code: 0, err: "" });
    expect(readdirSync(store.folder)).toEqual(before);
    expect((await cli(["version", "--url", store.url])).code).toBe(0);
  },
);
