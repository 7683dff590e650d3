/** `npm run test:aws-account` as far as it goes without an account. */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../scripts/test-aws-account.mjs", import.meta.url));
const ROOT = fileURLToPath(new URL("..", import.meta.url));

function run(...args: string[]) {
  // A proxy that refuses everything: what is sent would fail, and be seen.
  const env = { ...process.env, AWS_ENDPOINT_URL: "http://127.0.0.1:1" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], { env });
  return { status, out: String(stdout), err: String(stderr) };
}

describe("test:aws-account", () => {
  test.each([
    [[]],
    [["--account", "123456789012"]],
    [["--region", "eu-west-1"]],
    [["--account", "12345", "--region", "eu-west-1"]],
    [["--account", "123456789012", "--region", "mars"]],
    [["--yes"]],
  ])("test:aws-account %j runs nothing and says what is missing", (args) => {
    const { status, out, err } = run(...args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toContain("--account 123456789012 --region eu-west-1");
  });

  test("a dry run says what it would create, what that costs and how it is removed", () => {
    const args = ["--account", "123456789012", "--region", "eu-west-1", "--dry-run"];
    const { status, out, err } = run(...args);
    expect({ status, err }).toEqual({ status: 0, err: "" });
    const [, name = ""] = /stack (zael-test-\d{14}):/.exec(out) ?? [];
    expect(out).toContain("Account 123456789012, region eu-west-1");
    expect(out).toContain("costs less than $");
    expect(out).toContain(`delete -n ${name} --with-data --yes`);
    expect(out).toContain("nothing was sent to AWS");
    for (const [file = ""] of out.matchAll(/(?<=node )node_modules\S+\.mjs/g)) {
      expect(existsSync(`${ROOT}${file}`)).toBe(true);
    }
  });

  test("no other script and no workflow runs it", () => {
    const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"));
    const callers = Object.entries<string>(scripts).filter(([, line]) => line.includes("account"));
    expect(callers).toEqual([["test:aws-account", "node scripts/test-aws-account.mjs"]]);
  });
});
