/** `npm run hooks`, in a clone of its own. */

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-hooks-"));
const env = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_DIR: undefined };
const git = (...args: string[]) => spawnSync("git", args, { cwd: folder, env, encoding: "utf8" });
const hooks = (...args: string[]) =>
  execFileSync(process.execPath, [join(folder, "scripts/hooks.mjs"), ...args], {
    cwd: folder,
    env,
    encoding: "utf8",
  });

beforeAll(() => {
  git("init", "--quiet");
  git("config", "user.email", "test@example.com");
  git("config", "user.name", "Test");
  cpSync(join(ROOT, "scripts/hooks"), join(folder, "scripts/hooks"), { recursive: true });
  for (const file of ["scripts/hooks.mjs", "biome.json", "package.json"]) {
    cpSync(join(ROOT, file), join(folder, file));
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function commit(text: string): { status: number | null; stderr: string } {
  writeFileSync(join(folder, "file.ts"), text);
  git("add", "file.ts");
  return git("commit", "--quiet", "-m", "test");
}

test("one command switches hooks on that refuse a commit of unformatted code, and off", () => {
  expect(hooks()).toContain("Every commit checks its style");
  const refused = commit("export const   a = 'x'\n");
  expect(refused.status).not.toBe(0);
  expect(refused.stderr).toContain("npm run format");
  expect(commit('export const a = "x";\n')).toMatchObject({ status: 0 });
  expect(hooks("--remove")).toContain("off");
  expect(commit("export const   b = 'x'\n")).toMatchObject({ status: 0 });
  git("config", "core.hooksPath", "elsewhere");
  expect(() => hooks()).toThrow(/elsewhere/);
});
