/** `npm run simulate`, as it is typed. */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../../main.mjs", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command; `onStderr` gets what it has printed so far. */
function run(args: readonly string[], onStderr?: (text: string, stop: () => void) => void) {
  return new Promise<Ended>((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data: Buffer) => {
      stdout += data.toString();
    });
    child.stderr.on("data", (data: Buffer) => {
      stderr += data.toString();
      onStderr?.(stderr, () => child.kill("SIGINT"));
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

describe("npm run simulate", () => {
  test("npm run simulate runs seeds and says how it went", async () => {
    const { code, stdout, stderr } = await run(["--seed", "5", "--runs", "2", "--minutes", "0.02"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("Seeds 5 to 6, 0.02 virtual")]);
    expect(stdout).toMatch(/^2 seeds, all clean: \d+ calls, \d+ events/);
  });

  test("npm run simulate gives the same as JSON", async () => {
    const { code, stdout } = await run(["--runs", "1", "--minutes", "0.02", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ clean: true, runs: 1, failures: [] });
  });

  test("npm run simulate runs a scenario as a table or JSON", async () => {
    const { code, stdout } = await run(["--scenario", "flood", "--seconds", "0.2"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\$\/million/);
    const json = await run(["--scenario", "flood", "--seconds", "0.2", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject([{ name: "flood", seconds: 0.2, seed: 1 }]);
  });

  const wrong: readonly [string[], RegExp][] = [
    [["--runs", "many"], /--runs: expected a whole number, at least 1, got "many"/],
    [["--runs", "0"], /--runs: expected/],
    [["--seed", "-1"], /seed/],
    [["--minutes", "0"], /--minutes: expected a number above 0/],
    [["--sed", "1"], /--sed/],
    [["stray"], /stray/],
    [["--scenario", "nothing"], /--scenario: expected all, tenant, tenant-20, hot/],
    [["--scenario", "hot", "--runs", "3"], /a scenario has none/],
    [["--scenario", "hot", "--world", "lost"], /a scenario has none/],
    [["--world", "nowhere"], /--world: expected any, expiring.*, all, got "nowhere"/],
    [["--seconds", "3"], /--seconds is for a scenario/],
  ];
  for (const [args, message] of wrong) {
    test(`the command refuses ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await run(args);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(message);
    });
  }

  test("Ctrl-C ends it between two runs, with what it has", async () => {
    const args = ["--runs", "100000", "--minutes", "0.02"];
    const { code, stdout } = await run(args, (said, stop) => {
      if (said.includes("so far")) stop();
    });
    expect(code).toBe(130);
    expect(stdout).toMatch(/^[1-9]\d* seeds, all clean/);
  });
});
