/** Spellings of the Python library's commands that docs/python.md promises. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: string;
let url: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-spellings-"));
  url = `sqlite:${join(folder, "limits.db")}`;
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]) => cli([...args, "--url", url]);

async function ok(...args: string[]): Promise<string> {
  const { code, out, err } = await run(...args);
  expect({ args, code, err }).toEqual({ args, code: 0, err: "" });
  return out;
}

test("clear-disabled removes a switch, like clear", async () => {
  await ok("resource", "disable", "gpt-4");
  expect(await ok("resource", "clear-disabled", "gpt-4")).toContain("Removed the switch of gpt-4");
  await ok("entity", "disable", "key-1");
  expect(await ok("entity", "clear-disabled", "key-1")).toContain("Removed the switch of key-1");
});

test("--soft makes limits of every level soft, and refuses a name without a limit", async () => {
  const limits = ["-l", "rpm:10", "-l", "tpm:500", "--soft", "tpm"];
  for (const level of [["system"], ["resource", "gpt-4"], ["entity", "key-1"]]) {
    const [group = "", ...id] = level;
    const out = await ok(
      group,
      group === "entity" ? "set-limits" : "set-defaults",
      ...id,
      ...limits,
    );
    expect(out).toMatch(/tpm: 500\/min, soft/);
    expect(out).toMatch(/rpm: 10\/min$/m);
  }
  const wrong = await run("system", "set-defaults", "-l", "rpm:1", "--soft", "tpm");
  expect(wrong).toMatchObject({ code: 2, out: "" });
  expect(wrong.err).toContain("--soft names tpm, which no -l declares");
});

test("entity top-up takes its amounts with -a", async () => {
  await ok("system", "set-defaults", "-l", "rpm:10");
  await ok("acquire", "key-1", "gpt-4", "-c", "rpm=5");
  expect(await ok("entity", "top-up", "key-1", "-r", "gpt-4", "-a", "rpm:2")).toContain("rpm");
});

test("limits plan, diff and apply print a summary with -q, and apply --full writes all", async () => {
  const file = join(folder, "limits.yaml");
  writeFileSync(
    file,
    "namespace: default\nresources:\n  gpt-4: { disabled: true, limits: { rpm: { capacity: 5 } } }\n",
  );
  await ok("system", "set-defaults", "-l", "rpm:10");
  const plan = await ok("limits", "plan", "-f", file, "-q");
  expect(plan.trimEnd().split("\n")).toHaveLength(1);
  expect(
    (await run("limits", "diff", "-f", file, "--quiet")).out.trimEnd().split("\n"),
  ).toHaveLength(1);
  const applied = await ok("limits", "apply", "-f", file, "-q");
  expect(applied).toBe("Applied to default: 1 created, 0 updated, 0 deleted\n");
  expect(await ok("limits", "apply", "-f", file)).toContain("No changes");
  const full = await ok("limits", "apply", "-f", file, "--full");
  expect(full).toContain("gpt-4");
  expect(full).toContain("written again");
  expect(full).toContain("0 created, 1 updated, 0 deleted");
});

test("limits cfn-template --full makes every update of the stack write all", async () => {
  const file = join(folder, "limits.yaml");
  writeFileSync(file, "namespace: default\nsystem: { limits: { rpm: { capacity: 5 } } }\n");
  const { code, out } = await cli(["limits", "cfn-template", "-f", file, "--full"]);
  expect(code).toBe(0);
  expect(out).toContain("FullApply: true");
  const without = await cli(["limits", "cfn-template", "-f", file]);
  expect(without.out).not.toContain("FullApply");
});

test("loadtest push takes a folder with -C, and says what it lacks", async () => {
  const aws = ["--region", "us-east-1", "--endpoint-url", "http://127.0.0.1:1", "-n", "demo"];
  const none = await cli(["loadtest", "push", ...aws]);
  expect(none).toMatchObject({ code: 2, out: "" });
  expect(none.err).toContain("Expected a scenario (-f max-rps.mjs) or a folder");
  const empty = await cli(["loadtest", "push", ...aws, "-C", folder]);
  expect(empty).toMatchObject({ code: 1, out: "" });
  expect(empty.err).toContain(`There is no JavaScript or TypeScript file in ${folder}`);
  const missing = await cli(["loadtest", "push", ...aws, "-C", join(folder, "gone")]);
  expect(missing.err).toContain("Cannot read the folder");
  writeFileSync(join(folder, "broken.mjs"), "export default 5;\n");
  writeFileSync(join(folder, "types.d.ts"), "export type Five = 5;\n");
  const found = await cli(["loadtest", "push", ...aws, "-C", folder]);
  expect(found).toMatchObject({ code: 1, out: "" });
  expect(found.err).toContain("Invalid load");
  const named = await cli(["loadtest", "push", ...aws, "-C", folder, "-f", "other.mjs"]);
  expect(named.err).toContain(join(folder, "other.mjs"));
});
