/** On a real account, which costs money: only by `npm run test:aws-account`. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { collect } from "@zae-limiter/test-support/binary.ts";
import { afterAll, expect, test } from "vitest";
import { wholeLife } from "../../packages/cli/test/aws/whole-life.ts";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-account-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a stack on AWS is deployed, used, counted, upgraded and deleted", {
  timeout: 1_800_000,
}, async () => {
  const { ZAEL_AWS_ACCOUNT_STACK: name = "", AWS_REGION: region = "" } = process.env;
  expect(name).toMatch(/^zael-test-/);
  await wholeLife({
    name,
    region,
    folder,
    index: pathToFileURL(join(DIST, "index.js")).href,
    runsLambdas: true,
    run: (...args) => {
      const child = spawn(process.execPath, [join(DIST, "cli/main.js"), ...args], { cwd: folder });
      child.stdin.end();
      return collect(child);
    },
  });
});
