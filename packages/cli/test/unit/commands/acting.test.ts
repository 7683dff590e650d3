/** `acquire`, `peek`, `watch` and `run`, in process, at a constant time. */

import { existsSync, writeFileSync } from "node:fs";
import { acquire } from "@zae-limiter/cli/commands/acquire.ts";
import { peek } from "@zae-limiter/cli/commands/peek.ts";
import { run as runCommand } from "@zae-limiter/cli/commands/run.ts";
import { watch } from "@zae-limiter/cli/commands/watch.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";
import { expectShape } from "../shape.ts";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();
const NOON_MS = Date.parse("2030-01-01T12:00:00Z");

/** A namespace with a key that charges its project, at noon until `pass` is called. */
async function project() {
  let nowMs = NOON_MS;
  const timer: Timer = {
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
  };
  const clock = () => nowMs;
  const used = store.namespace({ clock, timer });
  await used.run("entity", "create", "acme");
  await used.run("entity", "create", "key-1", "--parent", "acme", "--cascade");
  await used.run("system", "set-defaults", "-l", "rpm:10", "-l", "tpm:1000");
  await used.run("entity", "set-limits", "acme", "-l", "tpm:5000");
  const left = async () => {
    const { limits } = await used.json<{
      limits: { entity_id: string; limit_name: string; available: number }[];
    }>("peek", "key-1", "gpt-4");
    return Object.fromEntries(
      limits.map((limit) => [`${limit.entity_id} ${limit.limit_name}`, limit.available]),
    );
  };
  const pass = (seconds: number) => {
    nowMs += seconds * 1000;
  };
  return { ...used, left, pass };
}

const FULL = { "key-1 rpm": 10, "key-1 tpm": 1000, "acme tpm": 5000 };

describe("acquire", () => {
  test("acquire counts totals, and peek shows them under their names", async () => {
    const { run, json } = await project();
    await run("entity", "set-limits", "acme", "-r", "@all", "-l", "rpm:2");
    const granted = await run("acquire", "key-1", "model-a", "-c", "rpm=1");
    expect(granted.out).toBe(
      "Granted: 1 rpm\n  key-1 rpm      9 of 10 left\n  acme @all/rpm  1 of 2 left\n",
    );
    expect((await run("peek", "key-1", "model-b")).out).toContain("@all/rpm");
    await run("acquire", "key-1", "model-b", "-c", "rpm=1");
    const refused = await run("acquire", "key-1", "model-c", "-c", "rpm=1");
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.out).toContain("acme needs 1 @all/rpm, has 0");
    const shown = await json<{ limits: { resource: string; available: number }[] }>(
      "peek",
      "key-1",
      "model-c",
    );
    expectShape(peek.json, shown);
    const total = shown.limits.find(({ resource }) => resource === "@all");
    expect(total).toMatchObject({ entity_id: "acme", available: 0 });
  });

  test("acquire consumes from the entity and the parents it cascades to", async () => {
    const { run, json, left } = await project();
    expect(await run("acquire", "key-1", "gpt-4", "-c", "rpm=1", "-c", "tpm=400")).toMatchObject({
      code: 0,
      out:
        "Granted: 1 rpm, 400 tpm\n  key-1 rpm  9 of 10 left\n" +
        "  key-1 tpm  600 of 1,000 left\n  acme tpm   4,600 of 5,000 left\n",
      err: "",
    });
    expect(await left()).toEqual({ "key-1 rpm": 9, "key-1 tpm": 600, "acme tpm": 4600 });
    const granted = await json("acquire", "key-1", "gpt-4", "--consume", "tpm=100");
    expectShape(acquire.json, granted);
    expect(granted).toMatchObject({
      granted: true,
      entity_id: "key-1",
      resource: "gpt-4",
      consumed: { tpm: 100 },
      degraded: false,
      retry_after_seconds: 0,
    });
  });

  test("acquire is refused with the time to wait, and consumes nothing", async () => {
    const { run, left } = await project();
    await run("acquire", "key-1", "gpt-4", "-c", "tpm=900");
    const refused = await run("acquire", "key-1", "gpt-4", "-c", "rpm=1", "-c", "tpm=200");
    expect(refused).toMatchObject({
      code: 3,
      out: "Refused: key-1 needs 200 tpm, has 100; try again in 6.1 s\n",
      err: "",
    });
    const { code, out } = await run("acquire", "key-1", "gpt-4", "-c", "tpm=200", "--json");
    expect(code).toBe(3);
    expectShape(acquire.json, JSON.parse(out));
    expect(JSON.parse(out)).toMatchObject({
      granted: false,
      consumed: {},
      retry_after_seconds: 6.001,
    });
    const never = await run("acquire", "key-1", "gpt-4", "-c", "tpm=2000", "--json");
    expect(JSON.parse(never.out)).toMatchObject({ granted: false, retry_after_seconds: null });
    expect((await run("acquire", "key-1", "gpt-4", "-c", "tpm=2000")).out).toContain(
      "that is more than the limit can ever hold",
    );
    expect(await left()).toEqual({ "key-1 rpm": 10, "key-1 tpm": 100, "acme tpm": 4100 });
  });

  test("a spent quota is refused with the instant at which it resets", async () => {
    const { run, json } = await project();
    const limits = ["-l", "rpm:10", "-l", "tpm:5/month Europe/Berlin", "--replace-kind"];
    await run("resource", "set-limits", "api", ...limits);
    await run("acquire", "new-1", "api", "-c", "tpm=5");
    const { code, out } = await run("acquire", "new-1", "api", "-c", "tpm=1");
    expect(code).toBe(3);
    expect(out).toMatch(
      /^Refused: new-1 needs 1 tpm, has 0; try again in .* \(resets [0-9-]+-01 00:00 Europe\/Berlin\)\n$/,
    );
    const peeked = await json("peek", "new-1", "api");
    const limit = (peeked as { limits: Record<string, unknown>[] }).limits[1] ?? {};
    const { resets_at: resetsAt, resets_at_ms: resetsAtMs, period_start_ms: startMs } = limit;
    expect(resetsAt).toMatch(/-01T00:00:00\+0[12]:00$/);
    expect(Date.parse(String(resetsAt))).toBe(resetsAtMs);
    expect(Number(startMs)).toBeLessThan(Number(resetsAtMs) - 27 * 86_400_000);
  });

  test("acquire waits as long as it may", async () => {
    const { run, pass } = await project();
    await run("acquire", "key-1", "gpt-4", "-c", "tpm=1000");
    const short = await run("acquire", "key-1", "gpt-4", "-c", "tpm=100", "--wait", "5");
    expect(short).toMatchObject({ code: 3 });
    pass(6);
    expect(await run("acquire", "key-1", "gpt-4", "-c", "tpm=100")).toMatchObject({ code: 0 });
  });

  test("Ctrl-C ends a wait, and nothing was taken", async () => {
    const { run, under, left } = await project();
    await run("acquire", "key-1", "gpt-4", "-c", "tpm=1000");
    const waited = await under(
      {
        isTerminal: true,
        onOutput: (text, interrupt) => {
          if (text.includes("Waiting")) setImmediate(() => interrupt("SIGINT"));
        },
      },
      ...["acquire", "key-1", "gpt-4", "-c", "tpm=1000", "--wait", "3600"],
    );
    expect(waited).toMatchObject({ code: 130, out: "" });
    expect(waited.err).toContain("Waiting for up to 1 h …");
    expect(await left()).toEqual({ "key-1 rpm": 10, "key-1 tpm": 0, "acme tpm": 4000 });
  });

  test("acquire takes limits for the call alone, and then needs nothing stored", async () => {
    const url = `sqlite:${store.folder}/fresh.db`;
    const args = ["acquire", "a", "b", "-c", "x=1", "--url", url];
    const nothing = await cli(args);
    expect(nothing).toMatchObject({ code: 1, out: "" });
    expect(nothing.err).toContain("Nothing is stored in ");
    expect(nothing.err).toContain("No limits are configured");
    expect(existsSync(`${store.folder}/fresh.db`)).toBe(false);
    expect(await cli([...args, "-l", "x:1/hour"])).toMatchObject({ code: 0 });
    expect(await cli([...args, "-l", "x:1/hour"])).toMatchObject({ code: 3 });
  });

  test.each([
    [["-c", "rpm"], 2, "expected a limit and a whole number, e.g. rpm=1"],
    [["-c", "rpm=-1"], 2, "expected a limit and a whole number"],
    [["-c", "rpm=1", "-c", "rpm=2"], 2, "-c names rpm twice"],
    [["-c", "nix=1"], 1, 'there is no limit "nix"'],
    [["-c", "rpm=1", "--wait", "long"], 2, "expected a number from 0 to 86400"],
    [[], 2, "required option '-c, --consume <name=amount>'"],
  ])("%j is refused with %j", async (options, code, reason) => {
    const { run } = await project();
    const refused = await run("acquire", "key-1", "gpt-4", ...options);
    expect(refused).toMatchObject({ code, out: "" });
    expect(refused.err).toContain(reason);
    expect(refused.err).toMatch(/^[^\n]+\n$/);
  });
});

describe("peek", () => {
  test("peek shows bars that fit the terminal, and consumes nothing", async () => {
    const { run, under, left } = await project();
    await run("acquire", "key-1", "gpt-4", "-c", "rpm=10", "-c", "tpm=999");
    const { code, out, err } = await run("peek", "key-1", "gpt-4");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe(
      [
        "key-1",
        `  rpm  ${"░".repeat(23)}          0 of 10  +10/min, full in 1 min`,
        `  tpm  █${"░".repeat(22)}       1 of 1,000  +1,000/min, full in 1 min`,
        "acme, ancestor",
        `  tpm  ${"█".repeat(19)}${"░".repeat(4)}   4,001 of 5,000  +5,000/min, full in 12 s`,
        "",
      ].join("\n"),
    );
    const narrow = await under({ columns: 64 }, "peek", "key-1", "gpt-4");
    expect(Math.max(...narrow.out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(64);
    const seen = await left();
    expect(await left()).toEqual(seen);
    const colours = await under({ isTerminal: true }, "peek", "key-1", "gpt-4");
    expect(colours.out).toContain("\u001b[33m█\u001b[39m");
  });

  test("peek is JSON for programs", async () => {
    const { json, left } = await project();
    const seen = await json("peek", "key-1", "gpt-4");
    expectShape(peek.json, seen);
    expect(await left()).toEqual(FULL);
    const other = await json("peek", "key-1", "gpt-4", "-l", "daily:7/day");
    expect(other).toMatchObject({
      limits: [{ limit_name: "daily", available: 7, full_in_seconds: 0 }, { entity_id: "acme" }],
    });
  });

  test("peek says so where there are no limits", async () => {
    const { run } = store.namespace();
    await run("entity", "create", "key-1");
    const { code, out, err } = await run("peek", "key-1", "gpt-4");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      'zae-limiter: No limits are configured for entity "key-1" and resource "gpt-4" at any level. ' +
        "Set some with: zae-limiter system set-limits -l rpm:100\n",
    );
  });

  test("peek of a total without limits names a command after which it has some", async () => {
    const { run } = store.namespace();
    await run("entity", "create", "key-1");
    const { code, err } = await run("peek", "key-1", "@all");
    expect(code).toBe(1);
    const [, command = ""] = /Set some with: zae-limiter (.+)\n/.exec(err) ?? [];
    expect(command).toBe("resource set-limits @all -l rpm:100");
    await run(...command.split(" "));
    expect(await run("peek", "key-1", "@all")).toMatchObject({ code: 0, err: "" });
  });
});

describe("watch", () => {
  test("watch draws over what it drew, and leaves the terminal as it was", async () => {
    const { under } = await project();
    const args = ["watch", "key-1", "gpt-4", "--count", "3", "--interval", "2"];
    const { code, out, err } = await under({ isTerminal: true, env: { NO_COLOR: "1" } }, ...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.startsWith("\u001b[?25lgpt-4 at 2030-01-01T12:00:00Z\nkey-1\n")).toBe(true);
    expect(out.split("\u001b[6A\u001b[J")).toHaveLength(3);
    expect(out).toContain("gpt-4 at 2030-01-01T12:00:04Z\n");
    expect(out.endsWith("\n\u001b[?25h")).toBe(true);
  });

  test("watch is a line of JSON each time, and sees limits that change", async () => {
    const { run, under } = await project();
    const changes: Promise<unknown>[] = [];
    const onOutput = () => {
      if (changes.length === 0) {
        changes.push(run("system", "set-defaults", "-l", "rpm:99", "-l", "tpm:1000"));
      }
    };
    const timer: Timer = {
      nowMs: () => NOON_MS,
      sleep: async () => {
        await Promise.all(changes);
      },
    };
    const args = ["watch", "key-1", "gpt-4", "--count", "2", "--json"];
    const { out } = await under({ onOutput, timer }, ...args);
    const looks = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    for (const look of looks) expectShape(watch.json, look);
    expect(looks).toMatchObject([
      { at: "2030-01-01T12:00:00Z", limits: [{ capacity: 10 }, {}, {}] },
      { limits: [{ capacity: 99 }, {}, {}] },
    ]);
  });

  test.each([
    ["SIGINT", 130, "\u001b[?25h\n"],
    ["SIGTERM", 143, "\u001b[?25h"],
    ["SIGPIPE", 0, "\u001b[?25h"],
  ] as const)("%s ends a watch in good order, with %i", async (how, expected, end) => {
    const { under } = await project();
    const { code, out } = await under(
      { isTerminal: true, onOutput: (_, interrupt) => interrupt(how) },
      "watch",
      "key-1",
      "gpt-4",
    );
    expect(code).toBe(expected);
    expect(out.match(/gpt-4 at/g)).toHaveLength(1);
    expect(out.endsWith(end)).toBe(true);
  });

  test("what cannot be seen is an error", async () => {
    const { run } = store.namespace();
    await run("entity", "create", "key-1");
    expect(await run("watch", "key-1", "gpt-4", "--count", "1")).toMatchObject({
      code: 1,
      out: "",
    });
    const often = await run("watch", "key-1", "gpt-4", "--interval", "0");
    expect(often).toMatchObject({ code: 2, out: "" });
  });
});

describe("run", () => {
  const NODE = process.execPath;
  const take = ["run", "key-1", "gpt-4", "-c", "rpm=1", "-c", "tpm=400"];

  test("run keeps what was consumed when the command succeeds", async () => {
    const { run, left } = await project();
    const ran = await run(...take, "--", NODE, "-e", "process.exit(0)");
    expect(ran).toMatchObject({ code: 0, out: "", err: "" });
    expect(await left()).toEqual({ "key-1 rpm": 9, "key-1 tpm": 600, "acme tpm": 4600 });
  });

  test("run refunds everything when the command fails, and ends like it", async () => {
    const { run, left } = await project();
    const ran = await run(...take, "--", NODE, "-e", "process.exit(7)");
    expect(ran).toMatchObject({
      code: 7,
      err: "The command ended with 7; everything was refunded\n",
    });
    const killed = await run(...take, "--", NODE, "-e", "process.kill(process.pid, 'SIGKILL')");
    expect(killed.code).toBe(137);
    const missing = await run(...take, "--", "no-such-command-here");
    expect(missing).toMatchObject({ code: 127 });
    expect(missing.err).toContain('The command "no-such-command-here" could not be run');
    expect((await run(...take, "--", store.folder)).code).toBe(126);
    expect(await left()).toEqual(FULL);
  });

  test("run holds a slot as long as its command runs, and others are refused", async () => {
    const { run, json } = store.namespace();
    await run("system", "set-limits", "-l", "parallel:1 concurrent");
    const end = `${store.folder}/end`;
    const script = `setInterval(() => fs.existsSync(${JSON.stringify(end)}) && process.exit(), 5)`;
    const render = ["run", "nightly", "render", "-c", "parallel=1"];
    const running = run(...render, "--", NODE, "-e", script);
    const shown = () => run("peek", "nightly", "render").then(({ out }) => out);
    await expect.poll(shown).toContain("0 of 1  1 concurrent, 1 in flight");
    expect(await run(...render, "--", NODE, "-e", "0")).toMatchObject({
      code: 3,
      err: "zae-limiter: Not run: nightly needs 1 parallel, has 0; try again in about 1.0 s\n",
    });
    const refused = await run("acquire", "nightly", "render", "-c", "parallel=1", "--json");
    expectShape(acquire.json, JSON.parse(refused.out));
    expect(JSON.parse(refused.out).limits[0]).toMatchObject({ available: 0, estimated: true });
    writeFileSync(end, "");
    expect(await running).toMatchObject({ code: 0 });
    expect(await json("peek", "nightly", "render")).toMatchObject({ limits: [{ available: 1 }] });
  });

  test("run does not start a command that does not fit", async () => {
    const { run } = await project();
    const mark = `${store.folder}/mark`;
    const script = `require("fs").writeFileSync(${JSON.stringify(mark)}, "")`;
    await run("acquire", "key-1", "gpt-4", "-c", "tpm=1000");
    const refused = await run(...take, "--", NODE, "-e", script);
    expect(refused).toMatchObject({
      code: 3,
      out: "",
      err: "zae-limiter: Not run: key-1 needs 400 tpm, has 0; try again in 25 s\n",
    });
    expect(existsSync(mark)).toBe(false);
    const json = await run(...take, "--json", "--", NODE, "-e", script);
    expect(json).toMatchObject({ code: 3, out: "" });
    expectShape(runCommand.json, JSON.parse(json.err));
    expect(JSON.parse(json.err)).toMatchObject({ granted: false, retry_after_seconds: 24.001 });
  });

  test("run reports on stderr with --json, because stdout is the command's", async () => {
    const { run } = await project();
    const { code, out, err } = await run(...take, "--json", "--", NODE, "-e", "process.exit(2)");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expectShape(runCommand.json, JSON.parse(err));
    expect(JSON.parse(err)).toEqual({
      granted: true,
      entity_id: "key-1",
      resource: "gpt-4",
      exit_code: 2,
      given_back: true,
      retry_after_seconds: 0,
    });
  });

  test("the command run needs a command to run", async () => {
    const { run } = await project();
    expect(await run(...take)).toMatchObject({ code: 2, out: "" });
    expect(await run(...take, "--")).toMatchObject({ code: 2, out: "" });
  });
});
