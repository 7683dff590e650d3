import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { COLOURED, PLAIN, paletteFor } from "../../../src/cli/palette.ts";
import { runProgram } from "../../../src/cli/program.ts";
import { CLIENT_VERSION } from "../../../src/domain/version.ts";

async function run(args: readonly string[], palette = PLAIN) {
  const said = { out: "", err: "" };
  const code = await runProgram(args, {
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
    palette,
  });
  return { code, ...said };
}

describe("the command line", () => {
  test.each([[["--version"]], [["-V"]], [["-V", "demo"]]])("%j says the version", async (args) => {
    expect(await run(args)).toEqual({ code: 0, out: `${CLIENT_VERSION}\n`, err: "" });
  });

  test("the version is that of the package", () => {
    const manifest = new URL("../../../package.json", import.meta.url);
    expect(JSON.parse(readFileSync(manifest, "utf8"))).toMatchObject({ version: CLIENT_VERSION });
  });

  test.each([[[]], [["--help"]], [["-h"]], [["demo", "--help"]]])("%j explains", async (args) => {
    const { code, out, err } = await run(args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^Usage: zae-limiter <command>\n/);
  });

  test.each([
    [["destroy"], 'unknown command "destroy"'],
    [["constructor"], 'unknown command "constructor"'],
    [["demo", "now"], "demo takes no arguments"],
    [["--loud"], "Unknown option '--loud'"],
    [["--help=yes"], "Option '-h, --help' does not take an argument"],
  ])("%j is refused in one line", async (args, reason) => {
    const err = `zae-limiter: ${reason}; see zae-limiter --help\n`;
    expect(await run(args)).toEqual({ code: 2, out: "", err });
  });
});

describe("the demonstration", () => {
  test("tells where limits come from, and that a change applies at once", async () => {
    const { code, out, err } = await run(["demo"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).not.toContain("\u001b");
    const rows = out.split("\n").map((line) => line.trim().split(/ {2,}/));
    expect(rows).toContainEqual(["web", "gpt-4", "rpm:30/min", "tpm:5000/min", "the resource"]);
    const batch = rows.filter(([entity, resource]) => entity === "batch" && resource === "gpt-4");
    expect(batch.map((row) => row.at(-1))).toEqual([
      "this entity, this resource",
      "this entity, any resource",
    ]);
  });

  test("tells what calls cost, what they give back, and when a refused one would work", async () => {
    const { out } = await run(["demo"]);
    const rows = out.split("\n").map((line) => line.trim().split(/ {2,}/));
    expect(rows.filter(([first]) => /^(before|while|afterwards)/.test(first ?? ""))).toEqual([
      ["before the call", "5000", "5000", "12000"],
      ["while it runs", "4500", "4500", "11500"],
      ["afterwards", "4270", "4270", "11270"],
      ["afterwards", "4270", "4270", "11270"],
    ]);
    expect(rows).toContainEqual(["web", "tpm", "4270", "4500", "230 missing"]);
    expect(rows).toContainEqual(["refused, nothing was taken; again in 2.8 s"]);
    expect(rows).toContainEqual(["granted after that time"]);
  });

  test("has colours where they are wanted, and the same words", async () => {
    const [plain, coloured] = [await run(["demo"]), await run(["demo"], COLOURED)];
    expect(coloured.out).toContain("\u001b[1m");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
    expect(coloured.out.replace(/\u001b\[[0-9;]*m/g, "")).toBe(plain.out);
  });
});

test.each([
  [true, undefined, COLOURED],
  [true, "", COLOURED],
  [true, "1", PLAIN],
  [false, undefined, PLAIN],
])("on a terminal: %j, NO_COLOR: %j", (isTerminal, noColor, palette) => {
  expect(paletteFor(isTerminal, noColor)).toBe(palette);
});
