import { spawn } from "node:child_process";
import { once } from "node:events";
import { isProcessGone, ownProcess } from "@zae-limiter/limiter/base/process-mark.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
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
