import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { isProcessGone, ownProcess } from "@zae-limiter/limiter/base/process-mark.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { build } from "esbuild";
import { describe, expect, test } from "vitest";

const own = ownProcess();

describeUnless(own === undefined && "the system shows no processes")("processes", () => {
  const mark = own ?? { machine: "", pid: 0, started: "" };

  describe("this process", () => {
    test("a process is not gone while it runs", () => {
      expect(mark.pid).toBe(process.pid);
      expect(isProcessGone(mark, mark)).toBe(false);
    });

    test("a process that was started at another time had the id before", () => {
      expect(isProcessGone({ ...mark, started: "1" }, mark)).toBe(true);
    });

    test("a process of another machine is never known to be gone", () => {
      expect(isProcessGone({ ...mark, machine: "elsewhere", started: "1" }, mark)).toBe(false);
    });
  });

  test.each(["EMFILE", "ENOENT", "EACCES"])(
    "a process that runs is not gone where its start cannot be read: %s",
    (code) => {
      const read = () => {
        throw Object.assign(new Error(code), { code });
      };
      expect(isProcessGone(mark, mark, read)).toBe(false);
      // No process has an id beyond the largest one.
      expect(isProcessGone({ ...mark, pid: 2 ** 22 + 1 }, mark, read)).toBe(true);
    },
  );

  test("a process that can open no more files takes none for gone", async () => {
    const source = new URL("../../../src/base/process-mark.ts", import.meta.url);
    const script = `
      import { openSync } from "node:fs";
      import { isProcessGone, ownProcess } from ${JSON.stringify(fileURLToPath(source))};
      const own = ownProcess();
      try { for (;;) openSync("/dev/null", "r"); } catch (error) { console.log(error.code); }
      console.log(isProcessGone(own, own));
    `;
    const built = await build({
      stdin: { contents: script, resolveDir: "/" },
      ...{ bundle: true, format: "esm", platform: "node", write: false },
    });
    const command = `ulimit -n 60; exec "${process.execPath}" --input-type=module`;
    const input = built.outputFiles?.[0]?.text;
    const { stdout } = spawnSync("sh", ["-c", command], { input, encoding: "utf8" });
    expect(stdout).toBe("EMFILE\nfalse\n");
  });

  test("a process that was killed is gone", async () => {
    const script = "process.stdout.write('up'); setInterval(() => {}, 1000);";
    const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "ignore"] });
    await once(child.stdout, "data");
    const other = { ...mark, pid: child.pid ?? 0 };
    const started = (await import("node:fs"))
      .readFileSync(`/proc/${other.pid}/stat`, "utf8")
      .split(") ")[1]
      ?.split(" ")[19];
    const running = { ...other, started: started ?? "" };
    expect(isProcessGone(running, mark)).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isProcessGone(running, mark)).toBe(true);
  });
});
