/** `loadtest run` in this process: what it prints, and what it says to bad input. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";
import { temporaryStore } from "../../temporary.ts";

const { folder } = temporaryStore();
const MEMORY = ["--url", "memory:"];
const SHORT = [...MEMORY, "--duration", "0.1", "--users", "2", "--spawn-rate", "1000"];

const ACQUIRE = `session.acquire({
  entityId: session.userId, resource: "api", limits: ["n:1000000"], consume: { n: 1 } })`;
let files = 0;

/** Writes a scenario; the text is its default export. */
function scenario(text: string): string {
  files += 1;
  const path = join(folder, `scenario-${files}.mjs`);
  writeFileSync(path, text);
  return path;
}

const good = scenario(`export default { users: {
  Caller: { wait: 1, task: (session) => ${ACQUIRE} },
  Other: { wait: 1, task: (session) => ${ACQUIRE} },
} };`);

describe("loadtest run", () => {
  test("loadtest run prints a table with a line for each class, and one for all", async () => {
    const { code, out, err } = await cli(["loadtest", "run", "-f", good, ...SHORT]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [title, about, , head, ...rows] = out.split("\n");
    expect(title).toMatch(/^scenario-1\.mjs on memory$/);
    expect(about).toBe("0.1 s, 2 users");
    expect(head?.split(/\s{2,}/)).toEqual([
      ..."users,acquires,per s,granted,refused,degraded,failed,p50,p95,p99,max".split(","),
    ]);
    expect(rows.slice(0, 3).map((row) => row.split(/\s/)[0])).toEqual([
      "Caller",
      "Other",
      "together",
    ]);
    expect(out).toMatch(/^Consumed: \d+ n$/m);
    expect(out).toMatch(/^Generator: \d+% of a processor$/m);
  });

  test("loadtest run runs only the classes that are named", async () => {
    const { out } = await cli(["loadtest", "run", "-f", good, "Other", ...SHORT, "--json"]);
    const { classes, total, consumed } = JSON.parse(out);
    expect(classes).toMatchObject([{ class: "Other", acquires: total.acquires }]);
    expect(consumed).toEqual({ n: total.granted });
  });

  test("loadtest run writes a line per interval, and a page that loads nothing", async () => {
    const [csv, html] = [join(folder, "run.csv"), join(folder, "run.html")];
    const files = ["--csv", csv, "--html", html];
    const { code, out } = await cli(["loadtest", "run", "-f", good, ...SHORT, ...files, "--json"]);
    expect(code).toBe(0);
    const [head, ...rows] = readFileSync(csv, "utf8").trimEnd().split("\n");
    expect(head).toMatch(/^at_seconds,users,acquires,per_second,granted,/);
    const acquires = rows.map((row) => Number(row.split(",")[2]));
    expect(acquires.reduce((sum, each) => sum + each, 0)).toBe(JSON.parse(out).total.acquires);
    const page = readFileSync(html, "utf8");
    expect(page.match(/<svg/g)).toHaveLength(3);
    expect(page).not.toMatch(/<script|src=|href=|url\(/);
  });

  test("loadtest run ends with 1 when a condition of --fail-if holds, and says what it was", async () => {
    const conditions = ["--fail-if", "p99>=0us", "--fail-if", "errors>0.1%"];
    const { code, out } = await cli(["loadtest", "run", "-f", good, ...SHORT, ...conditions]);
    expect(code).toBe(1);
    expect(out).toMatch(/^Failed: p99>=0us, and it was [\d.]+ms$/m);
    expect(out).not.toMatch(/Failed: errors/);
  });

  test("loadtest run counts refusals as outcomes, and errors of tasks by their messages", async () => {
    const file = scenario(`export default { users: {
      Refused: { wait: 1, task: (session) => session.acquire({
        entityId: "one", resource: "api", limits: ["n:1/day"], consume: { n: 1 } }) },
      Broken: { wait: 1, task: () => { throw new TypeError("no such thing"); } },
    } };`);
    const long = [...SHORT, "--duration", "1"];
    const { code, out } = await cli(["loadtest", "run", "-f", file, ...long, "--json"]);
    expect(code).toBe(0);
    const { classes, total, error_messages } = JSON.parse(out);
    const [refused, broken] = classes;
    expect(refused).toMatchObject({ granted: 1, failed: 0, errors: 0 });
    expect(refused.refused).toBeGreaterThan(0);
    expect(broken).toMatchObject({ acquires: 0 });
    expect(error_messages).toEqual([{ message: "TypeError: no such thing", count: total.errors }]);
  });

  test("loadtest run warns of nothing while many tasks wait", async () => {
    const file = scenario(`export default { users: {
      Sleeper: { wait: 5, task: (session) => session.sleep(50) },
    } };`);
    const warnings: Error[] = [];
    const listener = (warning: Error) => warnings.push(warning);
    process.on("warning", listener);
    const load = ["--users", "30", "--spawn-rate", "1000", "--duration", "0.1"];
    const { code } = await cli(["loadtest", "run", "-f", file, ...MEMORY, ...load]);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listener);
    expect({ code, warnings }).toEqual({ code: 0, warnings: [] });
  });

  test("Ctrl-C runs teardown, shows what there is, and ends with 130", async () => {
    const torn = join(folder, "torn-down");
    const file = scenario(`import { writeFileSync } from "node:fs";
      export default {
        users: { Caller: { wait: 1, task: (session) => ${ACQUIRE} } },
        teardown: () => writeFileSync(${JSON.stringify(torn)}, "yes"),
      };`);
    const { code, out } = await cli(["loadtest", "run", "-f", file, ...MEMORY, "-d", "60"], {
      isTerminal: true,
      env: { NO_COLOR: "1" },
      onOutput: (text, interrupt) => {
        if (text.includes("acquires/s")) interrupt("SIGINT");
      },
    });
    expect(code).toBe(130);
    expect(readFileSync(torn, "utf8")).toBe("yes");
    expect(out).toMatch(/Consumed: [\d,]+ n/);
  });
});

test("loadtest ui serves a page until Ctrl-C, which ends the run and its leases", async () => {
  let changed: Promise<unknown> = Promise.resolve();
  const args = ["loadtest", "ui", "-f", good, ...MEMORY, "--port", "0", "--no-open", "--json"];
  const { code, err } = await cli(args, {
    onOutput: (text, interrupt) => {
      const { origin, searchParams } = new URL(JSON.parse(text).url);
      const headers = {
        authorization: `Bearer ${searchParams.get("token")}`,
        "content-type": "application/json",
        "x-zae-limiter-dashboard": "1",
      };
      const body = JSON.stringify({ users: 2, rate: 50 });
      changed = fetch(`${origin}/api/start`, { method: "POST", headers, body })
        .then((response) => response.json())
        .finally(() => interrupt("SIGINT"));
    },
  });
  expect({ code, err }).toEqual({ code: 130, err: "" });
  expect(await changed).toMatchObject({ state: "running", users: 2, rate: 50, problem: null });
});

describe("loadtest tune", () => {
  const quick = [...MEMORY, "--max-users", "4", "--step-duration", "0.1"];

  test("loadtest tune shows the curve and the command to use", async () => {
    // How the best of several is found is the business of packages/loadtest/test/unit/tune.test.ts.
    const one = [...MEMORY, "--max-users", "1", "--step-duration", "0.1", "--max-p99", "60000"];
    const { code, out, err } = await cli(["loadtest", "tune", "-f", good, "Caller", ...one]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^\s+1 .* best$/m);
    expect(out).toContain(`  zae-limiter loadtest run -f ${good} Caller --users 1`);
  });

  test("loadtest tune ends with 1 when not even one user is quick enough", async () => {
    const args = ["loadtest", "tune", "-f", good, ...quick, "--max-p99", "0.0001", "--json"];
    const { code, out } = await cli(args);
    expect(code).toBe(1);
    const { best, curve, command } = JSON.parse(out);
    expect({ best, command }).toEqual({ best: null, command: null });
    expect(curve.map(({ users }: { users: number }) => users)).toEqual([1, 2]);
  });
});

describe("loadtest run refuses in one sentence", () => {
  const refusals: readonly [string, () => readonly string[], RegExp][] = [
    ["a file that is not there", () => ["-f", "none.mjs"], /: there is no file none\.mjs$/],
    ["a file of another kind", () => ["-f", "a.yaml"], /expected a file that ends in \.js/],
    [
      "a file without a default export",
      () => ["-f", scenario("export const a = 1;")],
      /has no default export; expected export default defineLoad/,
    ],
    [
      "a default export that is no scenario",
      () => ["-f", scenario("export default { user: {} };")],
      /there is no "user" here; expected setup, users, teardown/,
    ],
    [
      "a class without a task",
      () => ["-f", scenario("export default { users: { Caller: {} } };")],
      /expected a function, got undefined/,
    ],
    ["a file that does not parse", () => ["-f", scenario("export default {")], /cannot load/],
    [
      "a setup that throws",
      () => [
        "-f",
        scenario(
          "export default { setup: () => { throw new Error('no table'); }, users: { A: { task() {} } } };",
        ),
      ],
      /The scenario's setup failed: no table/,
    ],
    [
      "a class that the scenario does not have",
      () => ["-f", good, "Missing"],
      /the scenario has no user class "Missing"; it has Caller, Other/,
    ],
  ];
  test.each(refusals)("loadtest run refuses %s in one sentence", async (_, args, expected) => {
    const { code, out, err } = await cli(["loadtest", "run", ...args(), ...SHORT]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(err.trimEnd().replace(/^zae-limiter: /, "")).toMatch(expected);
  });

  test.each([
    ["a condition that cannot be read", ["--fail-if", "p98>1"], /expected a condition like/],
    ["a latency without a unit", ["--fail-if", "p99>50"], /expected a condition like/],
    [
      "Lambda workers without a table",
      ["--lambda", "--yes"],
      /--lambda is for a table on DynamoDB/,
    ],
    ["several processes on memory", ["--workers", "2"], /memory: is seen by one process only/],
  ])("loadtest run refuses %s", async (_, args, expected) => {
    const { code, err } = await cli(["loadtest", "run", "-f", good, ...SHORT, ...args]);
    expect(code).toBe(2);
    expect(err).toMatch(expected);
  });
});
