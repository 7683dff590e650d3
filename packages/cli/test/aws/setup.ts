/**
 * Starts preparing AWS for the tests, and does not wait for it: other tests run meanwhile. Those
 * that need it wait in `aws.ts`.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const PREPARE = fileURLToPath(new URL("prepare.mjs", import.meta.url));
const CACHE = fileURLToPath(
  new URL("../../../../node_modules/.cache/zae-limiter-aws", import.meta.url),
);

declare module "vitest" {
  interface ProvidedContext {
    awsState: string;
  }
}

export function setup(project: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-aws-"));
  const state = join(folder, "state.json");
  const child = spawn(process.execPath, [PREPARE, state, CACHE], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  project.provide("awsState", state);
  return async () => {
    const ended = once(child, "exit");
    child.stdin.end();
    if (child.exitCode === null) await ended;
    rmSync(folder, { recursive: true, force: true });
  };
}
