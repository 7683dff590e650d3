import { readFileSync } from "node:fs";
import { REGISTRY } from "@zae-limiter/cli/frame/registry.ts";
import { COLOURED, PLAIN, paletteFor } from "@zae-limiter/cli/terminal/palette.ts";
import { nearest } from "@zae-limiter/limiter/base/nearest.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";

describe("the command line", () => {
  test.each([[["--version"]], [["-V"]], [["-V", "demo"]]])("%j says the version", async (args) => {
    expect(await cli(args)).toMatchObject({ code: 0, out: `${CLIENT_VERSION}\n`, err: "" });
  });

  test("the version is that of the package", () => {
    const manifest = new URL("../../../../../package.json", import.meta.url);
    expect(JSON.parse(readFileSync(manifest, "utf8"))).toMatchObject({ version: CLIENT_VERSION });
  });

  test.each([[[]], [["--help"]], [["-h"]], [["help"]]])("%j lists all commands", async (args) => {
    const { code, out, err } = await cli(args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^Usage: zae-limiter <command>\n/);
    for (const { name, summary, shortFor } of REGISTRY) {
      const line = new RegExp(`^  ${name} +${summary}$`, "m");
      expect([name, line.test(out)]).toEqual([name, shortFor === undefined]);
    }
  });

  test.each([
    [["nonsense"], 'there is no command "nonsense", did you mean prices? See zae-limiter --help'],
    [["entitiy"], 'there is no command "entitiy", did you mean entity? See zae-limiter --help'],
    [["--loud"], "unknown option '--loud'; see zae-limiter --help"],
    [["help", "dmeo"], 'there is no command "dmeo", did you mean demo? See zae-limiter --help'],
    [
      ["demo", "now"],
      "too many arguments for 'demo'. Expected 0 arguments but got 1; see zae-limiter demo --help",
    ],
    [
      ["entity", "shw"],
      'there is no command "shw", did you mean show? See zae-limiter entity --help',
    ],
    [
      ["peek", "key-1", "gpt-4", "--jsn"],
      "unknown option '--jsn', did you mean --json? See zae-limiter peek --help",
    ],
    [["peek", "key-1"], "missing required argument 'resource'; see zae-limiter peek --help"],
    [
      ["audit", "list", "-e", "a", "-l", "0"],
      "option '-l, --limit <count>' argument '0' is invalid: " +
        "expected a whole number from 1 to 10000; see zae-limiter audit list --help",
    ],
    [
      ["usage", "list", "-w", "weekly", "-e", "a"],
      "option '-w, --window <type>' argument 'weekly' is invalid: " +
        "Allowed choices are hourly, daily, monthly; see zae-limiter usage list --help",
    ],
  ])("%j is refused in one line, with the way on", async (args, reason) => {
    const { code, out, err } = await cli(args);
    expect({ code, out, err }).toEqual({ code: 2, out: "", err: `zae-limiter: ${reason}\n` });
  });

  test("options of the store and of the output may come first", async () => {
    const [before, after] = [
      await cli(["--url", "memory:", "--json", "-N", "other", "resource", "list"]),
      await cli(["resource", "list", "--url=memory:", "--json", "-N", "other"]),
    ];
    expect(before).toMatchObject({ code: 0, out: '{\n  "resources": []\n}\n', err: "" });
    expect(after).toEqual(before);
    const words = ["--url", "memory:", "run", "a", "b", "-l", "x:1", "-c", "x=1", "--", "true"];
    expect(await cli(words)).toMatchObject({ code: 0, err: "" });
  });

  test("an option that comes first is refused where it means nothing", async () => {
    const { code, err } = await cli(["--url", "memory:", "demo"]);
    expect({ code, err }).toEqual({
      code: 2,
      err: "zae-limiter: unknown option '--url'; see zae-limiter demo --help\n",
    });
  });

  test("an error is one line; --debug shows where it comes from, --json makes it an object", async () => {
    const args = ["entity", "get-limits", "#", "--url", "memory:"];
    const plain = await cli(args);
    expect(plain).toMatchObject({ code: 1, out: "" });
    expect(plain.err).toMatch(/^zae-limiter: Invalid entityId: .*\n$/);
    const debug = await cli([...args, "--debug"]);
    expect(debug.err).toMatch(
      /^zae-limiter: Invalid entityId: .*\nInvalidIdentifierError: .*\n +at /,
    );
    const json = await cli([...args, "--json"]);
    expect(json).toMatchObject({ code: 1, out: "" });
    expect(JSON.parse(json.err)).toEqual({
      error: "ZAEL_INVALID_IDENTIFIER",
      message: plain.err.slice("zae-limiter: ".length, -1),
    });
    const usage = await cli(["entity", "get-limits", "--json"]);
    expect(JSON.parse(usage.err)).toMatchObject({ error: "USAGE" });
  });

  test("colours are for terminals", async () => {
    const { out } = await cli(["--help"], { isTerminal: true });
    expect(out).toContain("\u001b[1mUsage:");
    const calm = await cli(["--help"], { isTerminal: true, env: { NO_COLOR: "1" } });
    expect(calm.out).not.toContain("\u001b");
  });
});

test.each([
  [true, undefined, COLOURED],
  [true, "", COLOURED],
  [true, "1", PLAIN],
  [false, undefined, PLAIN],
])(
  "with a terminal of %j and NO_COLOR of %j, the palette is coloured or plain",
  (isTerminal, noColor, palette) => {
    expect(paletteFor(isTerminal, noColor)).toBe(palette);
  },
);

test.each([
  ["shwo", "show"],
  ["", "show"],
  ["list-resource", "list-resources"],
  ["lisst", "list"],
])("the word nearest to %j is %j", (word, expected) => {
  expect(nearest(word, ["show", "list", "list-resources", "create"])).toBe(expected);
});
