/** `store copy`, in process: between SQLite files. */

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { store } from "@zae-limiter/cli/commands/store/store.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
let from: string;
let to: string;
beforeEach(async () => {
  files += 1;
  from = `sqlite:${join(folder, `${files}-from.db`)}`;
  to = `sqlite:${join(folder, `${files}-to.db`)}`;
  const repo = await Repository.open(from);
  await repo.limits.setSystem(["rpm:100"], { principal: "ops" });
  await repo.entities.create({ id: "key-1" });
  await repo.close();
});

const copy = (...args: string[]) => cli(["store", "copy", from, to, ...args]);
const copyUnder = (more: Circumstances, ...args: string[]) =>
  cli(["store", "copy", from, to, ...args], more);

const COPIED = [
  "NAMESPACE   ENTITIES   LIMITS   BUCKETS   USAGE   AUDIT   OTHERS   WRITTEN",
  "default            1        1         0       0       2        0         4",
];

describe("store copy", () => {
  test("store copy prints what it has copied, and that both sides are the same", async () => {
    const { code, out, err } = await copy("--principal", "ann");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const path = (url: string) => url.slice("sqlite:".length);
    const outcome = `✓ Copied 1 namespace from ${path(from)} to ${path(to)}: both sides are the same`;
    expect(out.trimEnd().split("\n")).toEqual([...COPIED, outcome]);
    const repo = await Repository.open(to);
    const [event] = await repo.audit.list("$SYSTEM");
    expect(event).toMatchObject({ action: "store_copied", principal: "ann" });
    await repo.close();
  });

  test("--json has the counts of each namespace", async () => {
    const { code, out } = await copy("--json");
    const value = JSON.parse(out) as { same: boolean; namespaces: object[] };
    expectShape(shapeOf(store, "copy"), value);
    expect(code).toBe(0);
    expect(value).toMatchObject({
      same: true,
      namespaces: [{ entities: 1, audit: 2, written: 4 }],
    });
  });

  test("--dry-run counts, and makes no file", async () => {
    const { out } = await copy("--dry-run");
    expect(out).toContain("Would copy 1 namespace");
    expect(out).toContain("Nothing was written");
    const { code, err } = await cli(["store", "copy", to, from]);
    expect(code).toBe(1);
    expect(err).toContain("which is not there");
  });

  test("--live says how to end the copy", async () => {
    const { code, out } = await copy("--live");
    expect(code).toBe(0);
    expect(out).toContain("The copy is open: stop the limiters");
    expect((await copy()).code).toBe(0);
  });

  test("a target with data is refused with what to do", async () => {
    await copy();
    const { code, err } = await copy();
    expect(code).toBe(1);
    expect(err).toContain("Delete and purge the namespace there");
    const json = await copy("--json");
    expect(JSON.parse(json.err)).toMatchObject({ error: "ZAEL_COPY_REFUSED" });
  });

  test("an unknown namespace is named with the store that does not have it", async () => {
    const { code, err } = await copy("--namespace", "b");
    expect(code).toBe(1);
    expect(err).toContain('There is no namespace "b" in ');
  });

  test("a file that may only be read can be copied", async () => {
    const path = from.slice("sqlite:".length);
    chmodSync(path, 0o400);
    const { code, out } = await copy();
    chmodSync(path, 0o600);
    expect({ code, shown: out.includes(`from ${path} to`) }).toEqual({ code: 0, shown: true });
  });

  test("Ctrl-C ends a copy with 130 and says that it goes on, which it does", async () => {
    let interrupt: (how: "SIGINT") => void = () => undefined;
    const interrupted = await copyUnder({
      isTerminal: true,
      onInterruptible: (given) => {
        interrupt = given;
      },
      onOutput: (text) => {
        if (text.includes("Copying")) interrupt("SIGINT");
      },
    });
    expect(interrupted.code).toBe(130);
    expect(interrupted.err).toContain("the same command goes on where it is");
    const { code, out } = await copy("--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ same: true, namespaces: [{ resumed: true }] });
  });

  test("a target with a namespace in its address is refused", async () => {
    const { code, err } = await cli(["store", "copy", from, `${to}?namespace=a`]);
    expect(code).toBe(1);
    expect(err).toContain("each keeps the name that it has");
  });
});
