/** Commands that messages suggest: pasted into a shell, they work on the store the user named. */

import { failureOf } from "@zae-limiter/cli/frame/failure.ts";
import { namespaceHint, stackAt, stackHint, storeHint } from "@zae-limiter/cli/frame/hint.ts";
import { InfrastructureNotFoundError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();

/** Returns the words of the suggested command as a shell reads them, without `zae-limiter`. */
function pasted(message: string): string[] {
  const line = /: zae-limiter (.+)$/m.exec(message)?.[1] ?? "";
  const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
  return words.map((word) => word.replace(/'([^']*)'|\\'/g, (_, inner?: string) => inner ?? "'"));
}

afterEach(() => vi.unstubAllEnvs());

describe("a suggested command", () => {
  const options = ["--url", store.url, "-N", "tenant a's"];

  test("a suggested command works on the same file and namespace when it is pasted", async () => {
    await cli(["namespace", "register", "other", "--url", store.url]);
    const unregistered = await cli(["entity", "set-parent", "key-1", "--none", ...options]);
    expect(unregistered.code).toBe(1);
    const register = pasted(unregistered.err);
    expect(register).toEqual(["namespace", "register", "tenant a's", "--url", store.url]);
    expect(await cli(register)).toMatchObject({ code: 0, err: "" });

    const missing = await cli(["entity", "show", "key-1", ...options]);
    expect(await cli(pasted(missing.err))).toMatchObject({ code: 0, err: "" });
    const twice = await cli(["entity", "create", "key-1", ...options]);
    expect((await cli(pasted(twice.err))).out).toMatch(/^key-1\n/);

    const unlimited = await cli(["peek", "key-1", "gpt-4", ...options]);
    expect(await cli(pasted(unlimited.err))).toMatchObject({ code: 0, err: "" });
    expect(await cli(["peek", "key-1", "gpt-4", ...options])).toMatchObject({ code: 0, err: "" });
  });

  test("a suggested command begins with npx where npm has started this one", async () => {
    const asked = ["entity", "show", "key-1", "--url", store.url];
    await cli(["namespace", "register", "other", "--url", store.url]);
    expect((await cli(asked)).err).toContain(" with: zae-limiter entity create key-1");
    vi.stubEnv("npm_command", "exec");
    expect((await cli(asked)).err).toContain(" with: npx zae-limiter entity create key-1");
    expect(stackHint(["deploy"], { name: "my-app" })).toBe(
      "npx zae-limiter stack deploy --name my-app",
    );
  });

  test("a suggested command recovers a deleted namespace in the same file", async () => {
    const url = ["--url", store.url];
    await cli(["namespace", "register", "gone", ...url]);
    const { out } = await cli(["namespace", "delete", "gone", "--yes", ...url]);
    expect(await cli(pasted(out))).toMatchObject({ code: 0, err: "" });
  });

  test("a suggested command repeats the table, region, endpoint and namespace that were given", () => {
    const given = {
      name: "my-app",
      region: "eu-west-1",
      endpointUrl: "http://localhost:8000",
      namespace: "tenant-a",
      timeout: 5,
    };
    const flags = "--table my-app --region eu-west-1 --endpoint-url http://localhost:8000";
    expect(storeHint(["namespace", "list"], given)).toBe(`zae-limiter namespace list ${flags}`);
    expect(namespaceHint(["entity", "list"], given)).toBe(
      `zae-limiter entity list ${flags} --namespace tenant-a`,
    );
    expect(stackHint(["upgrade"], stackAt("my-app", given))).toBe(
      `zae-limiter stack upgrade ${flags.replace("--table", "--name")}`,
    );
  });

  test("a suggested command names the stack of an address by the options that stack commands have", () => {
    const url = "dynamodb://my-app?region=eu-west-1&endpoint=http%3A%2F%2Flocalhost%3A8000";
    expect(stackHint(["deploy"], stackAt("my-app", { url }))).toBe(
      "zae-limiter stack deploy --name my-app --region eu-west-1 --endpoint-url http://localhost:8000",
    );
  });

  test("a missing table behind an endpoint is created in code, where stacks may not exist", () => {
    const error = new InfrastructureNotFoundError("my-app");
    expect(failureOf(error, { endpointUrl: "http://localhost:8000" }).line).toBe(
      'There is no table "my-app" at http://localhost:8000. Create it in code with ' +
        "Repository.createTable; where the endpoint has CloudFormation, with: " +
        "zae-limiter stack deploy --name my-app --endpoint-url http://localhost:8000",
    );
    expect(failureOf(error).line).toBe(
      'There is no table "my-app" here. Create it with: zae-limiter stack deploy --name my-app',
    );
  });

  test("a suggested command leaves out what the user did not give", () => {
    expect(namespaceHint(["entity", "create", "key-1"], {})).toBe(
      "zae-limiter entity create key-1",
    );
  });
});

describe("short forms", () => {
  test("a stack command is the same with and without the word stack", async () => {
    const help = (await cli(["stack", "deploy", "--help"])).out;
    expect((await cli(["deploy", "--help"])).out).toBe(
      help.replace("zae-limiter stack deploy", "zae-limiter deploy"),
    );
    const args = ["check", "--url", store.url];
    expect(await cli(["stack", ...args])).toEqual(await cli(args));
  });

  test("set-defaults is the same command as set-limits", async () => {
    const { run } = store.namespace();
    expect(await run("system", "set-defaults", "-l", "rpm:5")).toEqual(
      await run("system", "set-limits", "-l", "rpm:5"),
    );
    expect(await run("resource", "delete-defaults", "gpt-4")).toMatchObject({
      code: 2,
      err: expect.stringContaining("see zae-limiter resource delete-limits --help") as string,
    });
  });
});
