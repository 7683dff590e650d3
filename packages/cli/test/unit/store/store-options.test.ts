/** Which store is meant: options, then the environment, then the file in this folder. */

import { type StoreOptions, storePlace } from "@zae-limiter/cli/store/store-options.ts";
import type { Terminal } from "@zae-limiter/cli/terminal/terminal.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";

function place(options: StoreOptions, env: Record<string, string> = {}) {
  return storePlace(options, { env } as unknown as Terminal);
}

const FILE = { kind: "sqlite", path: ".zae-limiter/limits.db", namespace: undefined };
const TABLE = {
  kind: "dynamodb",
  table: "app",
  region: undefined,
  endpoint: undefined,
  namespace: undefined,
};
const LOCAL = "http://127.0.0.1:8000";

describe("the store", () => {
  test.each<[StoreOptions, Record<string, string>, object]>([
    [{}, {}, FILE],
    [{}, { ZAEL_URL: "", ZAEL_STACK: "" }, FILE],
    [{}, { ZAEL_URL: "memory:" }, { kind: "memory", namespace: undefined }],
    [{}, { ZAEL_STACK: "app" }, TABLE],
    [{}, { ZAEL_URL: "sqlite:x.db", ZAEL_STACK: "app" }, { ...FILE, path: "x.db" }],
    [{ url: "sqlite:y.db" }, { ZAEL_URL: "sqlite:x.db" }, { ...FILE, path: "y.db" }],
    [{ name: "app" }, { ZAEL_URL: "sqlite:x.db" }, TABLE],
    [{ table: "app" }, { ZAEL_URL: "sqlite:x.db" }, TABLE],
    [{ table: "app", name: "app" }, {}, TABLE],
    [{ region: "eu-west-1" }, {}, { ...TABLE, table: "zae-limiter", region: "eu-west-1" }],
    [{ endpointUrl: LOCAL }, { ZAEL_STACK: "app" }, { ...TABLE, endpoint: LOCAL }],
    [
      { name: "other" },
      { ZAEL_URL: `dynamodb://app?endpoint=${LOCAL}&region=r` },
      { ...TABLE, table: "other", endpoint: LOCAL, region: "r" },
    ],
    [{ url: "dynamodb://app?region=a", region: "b" }, {}, { ...TABLE, region: "b" }],
  ])("the options %j with the environment %j name a store", (options, env, expected) => {
    expect(place(options, env).location).toEqual(expected);
  });

  test.each([
    [["--url", "memory:", "-n", "app"], 2, "--url and --name both name a store"],
    [["--url", "sqlite:x.db", "--region", "r"], 2, "are for DynamoDB, and --url is not"],
    [["--url", "postgres://x"], 1, "expected memory: | sqlite:"],
    [["--url", "memory:", "--table", "app"], 2, "--url and --table both name a store"],
    [["--table", "a", "--name", "b"], 2, "--table and --name both name a table"],
    [["-n", "my_app"], 1, "Invalid name"],
    [["--name", "Tenant GmbH"], 1, "a name for people is --display-name"],
    [["-n", "app", "--endpoint-url", "localhost"], 1, "expected a web address"],
    [["--timeout", "0"], 2, "expected a number from 0.001 to 3600"],
    [["-N", "_"], 1, "Invalid namespace"],
  ])("%j is refused with %j", async (options, code, reason) => {
    const refused = await cli(["resource", "list", ...options]);
    expect(refused).toMatchObject({ code, out: "" });
    expect(refused.err).toContain(reason);
  });

  test("--name says what it means where nothing else names a table", () => {
    const meant = "--name means --table: the table app on DynamoDB, not ";
    expect(place({ name: "app" }).remark).toContain(meant);
    expect(place({ name: "app" }, { ZAEL_URL: "sqlite:x.db" }).remark).toContain("x.db");
    expect(place({ table: "app" }).remark).toBeUndefined();
    expect(place({ name: "app", region: "r" }).remark).toBeUndefined();
    expect(place({ name: "app" }, { ZAEL_STACK: "other" }).remark).toBeUndefined();
    expect(place({ name: "app" }, { ZAEL_URL: "dynamodb://other" }).remark).toBeUndefined();
  });

  test("a store that does not answer is exit code 4, in the time it is given", async () => {
    const address = ["-n", "app", "--endpoint-url", "http://127.0.0.1:1", "--timeout", "0.2"];
    const { code, out, err } = await cli(["resource", "list", ...address]);
    expect({ code, out }).toEqual({ code: 4, out: "" });
    expect(err).toMatch(/^zae-limiter: The store does not answer: [^\n]+\n$/);
  });
});

describe("the namespace", () => {
  test.each<[StoreOptions, Record<string, string>, string]>([
    [{}, {}, "default"],
    [{}, { ZAEL_NAMESPACE: "env" }, "env"],
    [{}, { ZAEL_URL: "memory:?namespace=url", ZAEL_NAMESPACE: "env" }, "url"],
    [{ namespace: "option" }, { ZAEL_URL: "memory:?namespace=url" }, "option"],
  ])("%j with %j is %j", (options, env, expected) => {
    expect(place(options, env).namespace).toBe(expected);
  });
});
