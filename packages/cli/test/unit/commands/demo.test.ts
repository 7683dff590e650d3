/** `demo`, in virtual time: half a minute of traffic takes none. */

import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demo } from "@zae-limiter/cli/commands/demo.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { expectShape } from "../shape.ts";

const NOON_MS = Date.parse("2030-01-01T12:00:00Z");
const clock = () => NOON_MS;
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));

// The store of the demonstration is made there, and whatever it leaves is seen.
beforeEach(() => {
  vi.stubEnv("TMPDIR", folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  expect(readdirSync(folder)).toEqual([]);
});

/** Returns a timer that never waits, and the list of its pauses. */
function virtualTimer() {
  const slept: number[] = [];
  let nowMs = 0;
  const timer: Timer = {
    nowMs: () => nowMs,
    sleep: async (ms) => {
      slept.push(ms);
      nowMs += ms;
    },
  };
  return {
    timer,
    slept,
    jump: (ms: number) => {
      nowMs += ms;
    },
  };
}

const run = (args: readonly string[] = [], circumstances: Circumstances = {}) =>
  cli(["demo", ...args], { clock, timer: virtualTimer().timer, ...circumstances });

interface Call {
  readonly at_seconds: number;
  readonly entity_id: string;
  readonly outcome: string;
  readonly estimated_tokens: number;
  readonly used_tokens: number;
  readonly retry_after_seconds: number | null;
}

interface Shown {
  readonly calls: readonly Call[];
  readonly summary: Readonly<Record<string, number>>;
  readonly usage: readonly { entity_id: string; counters: { rpm: number; tpm: number } }[];
  readonly limits: readonly { entity_id: string; limit_name: string; capacity: number }[];
  readonly next: readonly string[];
  readonly lines: readonly string[];
}

async function json(...args: string[]): Promise<Shown> {
  const { code, out, err } = await run([...args, "--json"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as Shown;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

describe("in a pipe", () => {
  test("the demo shows which limits apply to each key and at which level they are stored", async () => {
    const { code, out, err } = await run();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const rows = out.split("\n").map((line) => line.trim().split(/ {2,}/));
    expect(rows).toContainEqual([
      "search",
      "rpm:90/min",
      "tpm:17000/min",
      "this entity, any resource",
    ]);
    expect(rows).toContainEqual(["├─ web", "rpm:20/min", "tpm:9000/min", "the resource"]);
    expect(rows).toContainEqual([
      "└─ agent",
      "rpm:20/min",
      "tpm:12000/min:3000",
      "this entity, this resource",
    ]);
  });

  test("the demo shows everything that can happen to a call, line by line", async () => {
    const { out } = await run();
    expect(out).not.toContain("\u001b");
    expect(out).toMatch(/ web {4}answered {2}estimated \d+, used \d+: \d+ more are consumed\n/);
    expect(out).toMatch(/ web {4}answered {2}estimated \d+, used \d+: \d+ are refunded\n/);
    expect(out).toMatch(/ refused {3}web has 0 rpm, asked for 1; again in \d\.\d s\n/);
    expect(out).toMatch(/ batch {2}refused {3}batch has \d+ tpm, asked for \d+; again in .+ s\n/);
    expect(out).toMatch(/ refused {3}search has \d+ tpm, asked for \d+; again in .+ s\n/);
    expect(out).toMatch(/ web {4}refused {3}web has .+ tpm, asked for 9,500, which never fits\n/);
    expect(out).toMatch(/ failed {4}the model failed; all \d+ are refunded\n/);
    expect(out).toMatch(/14\.0 s {2}ops {4}gives batch .+ tpm:24000\/min:6000, at once\n/);
    expect(out.match(/^ {2}gpt-4, what is left after/gm)).toHaveLength(3);
    expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  test("the demo ends with the usage, the audit log, and what to do next", async () => {
    const { out } = await run();
    const rows = out.split("\n").map((line) => line.trim().split(/ {2,}/));
    const together = rows.find(([first]) => first === "together");
    const search = rows.findLast(([first]) => first === "search");
    expect(search?.slice(1)).toEqual([together?.[1], together?.[5], "2030-01-01T12:00:00Z"]);
    expect(rows).toContainEqual(["limits_set", "ops", "2030-01-01T12:00:14Z"]);
    expect(out.endsWith("  zae-limiter --help\n")).toBe(true);
  });
});

describe("--json", () => {
  test("--json has the promised form, and the lines that are shown without it", async () => {
    const shown = await json();
    expectShape(demo.json, shown);
    expect(shown.lines).toEqual((await run()).out.trimEnd().split("\n"));
  });

  test.each(["6", "0", "1", "4711"])("--json adds up, with the seed %s", async (seed) => {
    const { calls, summary, usage, limits } = await json("--seed", seed);
    const having = (outcome: string) => calls.filter((call) => call.outcome === outcome);
    const answered = having("answered");
    expect(summary).toEqual({
      answered: answered.length,
      refused: having("refused").length,
      failed: having("failed").length,
      tokens_estimated: sum(answered.map((call) => call.estimated_tokens)),
      tokens_used: sum(answered.map((call) => call.used_tokens)),
    });
    expect(having("refused").length).toBeGreaterThan(10);
    const counted = Object.fromEntries(usage.map((one) => [one.entity_id, one.counters]));
    for (const key of ["web", "batch", "agent"]) {
      const own = answered.filter((call) => call.entity_id === key);
      const tpm = sum(own.map((call) => call.used_tokens));
      expect(counted[key]).toEqual({ rpm: own.length, tpm });
    }
    expect(counted.search).toEqual({ rpm: answered.length, tpm: summary.tokens_used });
    expect(calls.filter((call) => call.retry_after_seconds === null)).toMatchObject([
      { entity_id: "web", estimated_tokens: 9500, at_seconds: 8.2 },
    ]);
    expect(calls.every((call) => call.at_seconds <= 30)).toBe(true);
    const batch = limits.filter((limit) => limit.entity_id === "batch");
    expect(batch.map(({ limit_name, capacity }) => [limit_name, capacity])).toEqual([
      ["rpm", 60],
      ["tpm", 6000],
    ]);
  });

  test("--json is equal for equal seeds and differs for different seeds", async () => {
    const [first, again, other] = [await json(), await json("--seed", "6"), await json("--seed=7")];
    expect(again).toEqual(first);
    expect(other.calls).not.toEqual(first.calls);
    const wrong = await run(["--seed", "-1"]);
    expect(wrong).toMatchObject({ code: 2, out: "" });
  });
});

const ESCAPE = "\u001b";
const COLOUR = new RegExp(`${ESCAPE}\\[[0-9;]*m`);
const CURSOR = new RegExp(`${ESCAPE}\\[\\?25[lh]`, "g");
/** Moves back some lines, if any, then the text. */
const DRAWN = new RegExp(`^(?:${ESCAPE}\\[(\\d+)A${ESCAPE}\\[J)?(.*)$`, "s");

/** Keeps the lines that are on the screen after each piece of output. */
class Screen {
  readonly lines: string[] = [];
  longest = 0;
  highest = 0;

  readonly draw = (text: string) => {
    const [, up, plain = ""] = DRAWN.exec(text) ?? [];
    if (up !== undefined) {
      this.lines.splice(-Number(up));
      const added = unpainted(plain).split("\n").slice(0, -1);
      this.longest = Math.max(this.longest, ...added.map((line) => line.length));
      this.highest = Math.max(this.highest, added.length);
    }
    this.lines.push(...unpainted(plain).split("\n").slice(0, -1));
  };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
const unpainted = (text: string) => text.replace(/\u001b\[[?0-9;]*[mhl]/g, "");

describe("on a terminal", () => {
  test("on a terminal, a second of the demo takes a second and the last picture stays", async () => {
    const { timer, slept } = virtualTimer();
    const screen = new Screen();
    const { code, out } = await run([], { isTerminal: true, timer, onOutput: screen.draw });
    expect(code).toBe(0);
    expect(sum(slept)).toBe(34_000);
    expect(out).toContain("\u001b[32m");
    // Each picture but the first is drawn over another.
    expect(out.match(/what is left after/g)).toHaveLength(150);
    const seen = screen.lines.filter((line) => line.includes("what is left after"));
    expect(seen).toEqual(["  gpt-4, what is left after 30.0 of 30 s"]);
    expect(screen.lines.filter((line) => / s {2}(web|batch|agent|ops) /.test(line))).toHaveLength(
      6,
    );
    expect(out.match(CURSOR)).toEqual(["\u001b[?25l", "\u001b[?25h"]);
  });

  test.each([
    [80, 24],
    [40, 15],
    [24, 10],
    [12, 4],
  ])("on a terminal of %d columns and %d rows, the picture fits", async (columns, rows) => {
    const screen = new Screen();
    const { code } = await run([], { isTerminal: true, columns, rows, onOutput: screen.draw });
    expect(code).toBe(0);
    expect(screen.longest).toBeLessThanOrEqual(columns);
    expect(screen.highest).toBeLessThan(rows);
  });

  test("the variable NO_COLOR is respected", async () => {
    const { out } = await run([], { isTerminal: true, env: { NO_COLOR: "1" } });
    expect(out).toContain("\u001b[?25l");
    expect(out).not.toMatch(COLOUR);
  });

  test("--fast waits for nothing and prints the lines of a pipe in colours", async () => {
    const { timer, slept } = virtualTimer();
    const { out } = await run(["--fast"], { isTerminal: true, timer });
    expect(sum(slept)).toBe(0);
    expect(out).toContain("\u001b[1m");
    expect(unpainted(out)).toBe((await run()).out);
  });

  test("after a break, such as Ctrl-Z, the demo continues where it stopped", async () => {
    const { timer, slept, jump } = virtualTimer();
    const onOutput = (text: string) => {
      if (text.includes("after 10.0 of")) jump(600_000);
    };
    await run([], { isTerminal: true, timer, onOutput });
    expect(sum(slept)).toBeGreaterThan(33_000);
  });
});

describe("interrupted", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGPIPE", 0],
  ] as const)(
    "interrupted by %s, the demo ends with %d, and its store is gone",
    async (how, expected) => {
      let store: string[] = [];
      const { code, out, err } = await run([], {
        isTerminal: true,
        onOutput: (text, interrupt) => {
          if (!text.includes("after  5.0 of")) return;
          store = readdirSync(folder);
          interrupt(how);
        },
      });
      expect({ code, err }).toEqual({ code: expected, err: "" });
      expect(store).toHaveLength(1);
      expect(out).not.toContain("after  5.4 of");
      expect(out.endsWith("\u001b[?25h")).toBe(true);
    },
  );

  test("interrupted in a pipe, the demo ends at once with code 0", async () => {
    const { code, out } = await run([], {
      onOutput: (text, interrupt) => text.includes(" 5.0 s") && interrupt("SIGPIPE"),
    });
    expect(code).toBe(0);
    expect(out).not.toContain("What happened");
  });
});

describe("what to try next", () => {
  test("the suggested commands work in the order in which they are shown", async () => {
    const { next } = await json();
    const file = join(mkdtempSync(join(tmpdir(), "next-")), "limits.yaml");
    const env = { ZAEL_URL: `sqlite:${join(file, "..", "limits.db")}` };
    for (const command of next) {
      const [program, ...words] = command.replace("limits.yaml", file).split(" ");
      expect(program).toBe("zae-limiter");
      // No user is here to end it.
      const more = words[0] === "watch" ? ["--count", "1"] : [];
      expect(await cli([...words, ...more], { env }), command).toMatchObject({ code: 0, err: "" });
    }
    expect(existsSync(file)).toBe(true);
    rmSync(join(file, ".."), { recursive: true });
  });

  test("the suggested commands avoid a store from the environment and begin as the demo was started", async () => {
    const { out } = await run([], { env: { ZAEL_URL: "dynamodb://prod", npm_command: "exec" } });
    const commands = out.split("\n").filter((line) => line.startsWith("  npx zae-limiter "));
    expect(commands).toHaveLength(6);
    expect(commands.slice(0, -1).every((line) => line.includes(" --url sqlite:"))).toBe(true);
  });
});

test("without a writable temporary folder, the demo says to set TMPDIR", async () => {
  vi.stubEnv("TMPDIR", join(folder, "missing"));
  const { code, out, err } = await run();
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("Set TMPDIR");
});

test("the help of the demo says that nothing stays behind and lists its options", async () => {
  const { code, out } = await run(["--help"]);
  expect(code).toBe(0);
  expect(out).toContain("Nothing stays behind");
  expect(out).toContain("--seed <n>");
});
