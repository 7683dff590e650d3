/** `version`, `check` and `status` of the store that all other commands use by default. */

import { status } from "@zae-limiter/cli/commands/stack/status.ts";
import { check, version } from "@zae-limiter/cli/commands/stack/version.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";
import { expectShape } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const LEAVES = { check, status, version };

describe("a file that ZAEL_URL names", () => {
  test.each(Object.keys(LEAVES) as (keyof typeof LEAVES)[])("%s is about it", async (name) => {
    const { run, json } = store.namespace();
    await run("system", "set-defaults", "-l", "rpm:9");
    const found = await json<{ schema_version: string }>(name);
    expectShape(LEAVES[name].json, found);
    expect(found.schema_version).toBe(SCHEMA_VERSION);
    expect(await run(name)).toMatchObject({ code: 0, err: "" });
  });

  test("version and status name it", async () => {
    const { run } = store.namespace();
    await run("system", "set-defaults", "-l", "rpm:9");
    expect((await run("version")).out).toMatch(/Store +\S+limits\.db\n[\s\S]*✓ Compatible\n$/);
    expect((await run("status")).out).toMatch(/limits\.db\n\n[\s\S]*Size +~[\s\S]*✓ Ready\n$/);
  });
});

describe("a file that is not there", () => {
  const env = { ZAEL_URL: `sqlite:${store.folder}/none.db` };
  test.each<[keyof typeof LEAVES, number]>([
    ["version", 0],
    ["check", 1],
    ["status", 1],
  ])("%s says so, and ends with %i", async (name, code) => {
    const ran = await cli([name], { env });
    expect(ran.code).toBe(code);
    expect(ran.out).toMatch(/[Nn]othing is stored in \S+none\.db yet/);
    const printed = await cli([name, "--json"], { env });
    expectShape(LEAVES[name].json, JSON.parse(printed.out));
  });
});

describe("upgrade", () => {
  test("upgrade refuses a file, and says how to name a stack", async () => {
    for (const env of [{ ZAEL_URL: store.url }, { ZAEL_URL: "memory:" }, {}]) {
      const { code, err } = await cli(["upgrade", "--yes"], { env });
      expect(code).toBe(1);
      expect(err).toMatch(
        /^zae-limiter: upgrade needs a table on DynamoDB, and \S+ is not one\. .*--name/,
      );
    }
  });

  test("upgrade is about the table that ZAEL_URL names, or about the one of --name there", async () => {
    const env = { ZAEL_URL: "dynamodb://my-app?region=eu-west-1&endpoint=http://127.0.0.1:1" };
    for (const [args, expected] of [
      [[], "my-app"],
      [["--name", "other"], "other"],
    ] as const) {
      const { code, err } = await cli(["upgrade", "--yes", ...args], { env });
      expect(code).toBe(4);
      expect(err).toContain(`could not be reached for BatchGetItem [stack=${expected}]`);
    }
  });
});
