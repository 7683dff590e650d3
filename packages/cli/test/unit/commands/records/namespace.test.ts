/** `namespace`, in process. Each test has a file of its own: these commands see all of it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { namespace } from "@zae-limiter/cli/commands/records/namespace.ts";
import { type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
const NOON = "2030-01-01T12:00:00Z";
const clock = () => Date.parse(NOON);

let files = 0;
let env: Record<string, string> = {};
beforeEach(() => {
  files += 1;
  env = { ZAEL_URL: `sqlite:${join(folder, `${files}.db`)}` };
});

const run = (...args: string[]) => cli(["namespace", ...args], { env, clock });
const under = (more: Circumstances, ...args: string[]) =>
  cli(["namespace", ...args], { env, clock, ...more });

/** Returns the output of `--json`, checked against its shape. */
async function json<T>(name: string, ...args: string[]): Promise<T> {
  const { code, out, err } = await run(name, ...args, "--json");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const value = JSON.parse(out) as T;
  expectShape(shapeOf(namespace, name), value);
  return value;
}

interface Registered {
  readonly namespaces: readonly { name: string; namespace_id: string }[];
}

async function register(name: string): Promise<string> {
  const { namespaces } = await json<Registered>("register", name);
  return namespaces[0]?.namespace_id as string;
}

const cells = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));

describe("register", () => {
  test("register prints one namespace as one line, counts several, and again they stay as they are", async () => {
    const one = await run("register", "a");
    expect(one).toMatchObject({ code: 0, err: "" });
    expect(one.out).toMatch(/^a: [\w-]{11}\n$/);
    const { out } = await run("register", "a", "b");
    expect(out).toMatch(/^Registered 2 namespaces:\n {2}a: [\w-]{11}\n {2}b: [\w-]{11}\n$/);
    expect(out).toContain(one.out.trim());
  });

  test("a reserved or wrong name is refused, and none of the others is registered", async () => {
    expect(await run("register", "a", "_")).toMatchObject({
      code: 1,
      out: "",
      err: 'zae-limiter: Invalid namespace: "_" is reserved\n',
    });
    expect(await run("register")).toMatchObject({ code: 2, out: "" });
    await register("b");
    const { namespaces } = await json<Registered>("list");
    expect(namespaces.map(({ name }) => name)).toEqual(["b", "default"]);
  });

  test("register does not bring back a `default` that was deleted", async () => {
    await register("a");
    await run("delete", "default", "-y");
    await register("b");
    const { namespaces } = await json<Registered>("list");
    expect(namespaces.map(({ name }) => name)).toEqual(["a", "b"]);
  });
});

describe("list and show", () => {
  test("list and show print ids and times", async () => {
    const id = await register("tenant-a");
    const { code, out } = await run("list");
    expect(code).toBe(0);
    expect(cells(out)).toEqual([
      ["NAME", "ID", "CREATED"],
      ["default", expect.stringMatching(/^[\w-]{11}$/), NOON],
      ["tenant-a", id, NOON],
    ]);
    expect((await run("show", "tenant-a")).out).toBe(
      `tenant-a\n  Id       ${id}\n  Status   active\n  Created  ${NOON}\n`,
    );
    expect(await json("show", "tenant-a")).toEqual({
      name: "tenant-a",
      namespace_id: id,
      status: "active",
      created_at: NOON,
    });
  });

  test("list and show show of a missing namespace fails and suggests the next command", async () => {
    const id = await register("gone");
    expect(await run("show", "typo")).toMatchObject({
      code: 1,
      out: "",
      err:
        'zae-limiter: There is no namespace "typo". ' +
        "Register it with: zae-limiter namespace register typo\n",
    });
    await run("delete", "gone", "-y");
    expect((await run("show", "gone")).err).toBe(
      `zae-limiter: The namespace "gone" was deleted. ` +
        `Recover it with: zae-limiter namespace recover ${id}\n`,
    );
  });
});

describe("delete, orphans, recover", () => {
  test("a deleted namespace is listed as an orphan and can be recovered", async () => {
    const id = await register("a");
    const { out } = await run("delete", "a", "--yes");
    expect(out).toBe(`Deleted a. Recover it with: zae-limiter namespace recover ${id}\n`);
    expect(cells((await run("orphans")).out)).toEqual([
      ["ID", "NAME", "DELETED", "STATUS"],
      [id, "a", NOON, "deleted"],
    ]);
    expect(await json("orphans")).toEqual({
      orphans: [{ namespace_id: id, name: "a", deleted_at: NOON, status: "deleted" }],
    });
    expect((await run("recover", id)).out).toBe(`Recovered a: ${id}\n`);
    expect((await run("orphans")).out).toBe("No deleted namespace has data left\n");
    expect(await json("delete", "a", "-y")).toEqual({ name: "a", namespace_id: id, deleted: true });
    expect(await json("recover", id)).toEqual({ name: "a", namespace_id: id });
  });

  test("a name that is not there is nothing to delete; a declined question deletes nothing", async () => {
    await register("a");
    expect((await run("delete", "typo", "-y")).out).toBe("There was no namespace typo\n");
    expect(await json("delete", "typo", "-y")).toMatchObject({
      namespace_id: null,
      deleted: false,
    });
    const declined = await under({ answers: [false] }, "delete", "a");
    expect(declined).toMatchObject({
      code: 1,
      out: "",
      err: "zae-limiter: Aborted: nothing was deleted\n",
      questions: ["Delete the namespace a? It can be recovered until it is purged."],
    });
    expect((await run("show", "a")).code).toBe(0);
    expect((await run("delete", "_", "-y")).code).toBe(1);
  });

  test("what is unknown, active or taken is not recovered", async () => {
    const id = await register("a");
    expect((await run("recover", id)).err).toContain("it is active");
    expect((await run("recover", "unknown")).err).toMatch(
      /^zae-limiter: No namespace has the id "unknown"\. List deleted ones with: zae-limiter namespace orphans/,
    );
    await run("delete", "a", "-y");
    await register("a");
    const { code, err } = await run("recover", id);
    expect(code).toBe(1);
    expect(err).toContain("registered again");
  });
});

describe("purge", () => {
  test("purge removes what is there, and shows how far it is on a terminal", async () => {
    const id = await register("a");
    for (const entity of ["x", "y", "z"]) {
      await cli(["entity", "create", entity, "-N", "a"], { env, clock });
    }
    expect((await run("purge", id, "-y")).err).toContain("delete it before you purge it");
    await run("delete", "a", "-y");
    const declined = await under({ answers: [false] }, "purge", id);
    expect(declined).toMatchObject({
      code: 1,
      err: "zae-limiter: Aborted: nothing was purged\n",
      questions: [`Purge ${id}? Its data is then gone for good.`],
    });
    const { code, out, err } = await under({ isTerminal: true }, "purge", id, "-y");
    expect({ code, out }).toEqual({ code: 0, out: `Purged ${id}: 6 records deleted\n` });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it has to find them.
    const shown = err.replace(/\u001b\[[0-9;]*m/g, "").split(/\r\u001b\[K/);
    expect(shown[0]).toBe(`Purging ${id}: 6 records deleted`);
    // What is drawn over is gone in the end.
    expect(shown.at(-1)).toBe("");
    expect((await run("orphans")).out).toBe("No deleted namespace has data left\n");
  });

  test("purge of an unknown id succeeds; without a terminal no line is drawn over", async () => {
    await register("a");
    expect(await json("purge", "unknown", "-y")).toEqual({
      namespace_id: "unknown",
      records_deleted: 0,
    });
    expect(await run("purge", "unknown", "-y")).toMatchObject({ code: 0, err: "" });
  });
});
