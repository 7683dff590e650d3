/** Rules that hold for every command. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isGroup, type Leaf } from "@zae-limiter/cli/frame/command.ts";
import {
  COMMON_OPTIONS,
  flagsOf,
  ownOptions,
  storeOptions,
} from "@zae-limiter/cli/frame/options.ts";
import { loadTree } from "@zae-limiter/cli/frame/registry.ts";
import { type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const tree = await loadTree();
const leaves = tree.flatMap(({ node }): { words: string[]; leaf: Leaf }[] =>
  isGroup(node)
    ? node.commands.map((leaf) => ({ words: [node.name, leaf.name], leaf }))
    : [{ words: [node.name], leaf: node }],
);
const named = leaves.map(({ words, leaf }) => [words.join(" "), words, leaf] as const);

/** Values of options that do not take any word. */
const VALUE: Readonly<Record<string, string>> = { "-c, --consume <name=amount>": "rpm=1" };

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
const file = join(folder, "limits.db");
/** The bytes of the store before any command reads it. */
let stored: Bytes;
beforeAll(async () => {
  const url = ["--url", `sqlite:${file}`];
  await cli(["system", "set-defaults", "-l", "rpm:9", ...url]);
  await cli(["acquire", "gpt-4", "gpt-4", "-c", "rpm=1", ...url]);
  // Usage that is in no snapshot yet is written when it is first read.
  await cli(["usage", "summary", ...url]);
  await letGo("all");
  stored = bytes();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Some drivers let go of a file only when their closed connections are collected. */
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;

/**
 * Collects closed connections: those of the last command, or all of them, which takes long in a
 * process that has run many tests.
 */
async function letGo(which: "last" | "all"): Promise<void> {
  if (which === "all") collect();
  else collect({ type: "minor" });
  await turn();
}

type Bytes = readonly (string | undefined)[];

/** Returns what is stored: the file, and what is still in its log. */
function bytes(): Bytes {
  return [file, `${file}-wal`].map((path) =>
    existsSync(path) ? readFileSync(path).toString("base64") : undefined,
  );
}

/** Options of commands that need one of several. */
const ONE_OF: Readonly<Record<string, readonly string[]>> = { periods: ["--entity-id", "gpt-4"] };

/** Options without which a command is not even read. */
function required(leaf: Leaf): string[] {
  const options = ownOptions(leaf)
    .filter((option) => option.required === true)
    .flatMap((option) => [flagsOf(option).names.at(-1) as string, VALUE[option.flags] ?? "gpt-4"]);
  return [...options, ...(ONE_OF[leaf.name] ?? [])];
}

describe("every word", () => {
  test.each(tree.map(({ entry, node }) => [entry.name, entry, node] as const))(
    "%s is listed as what it is",
    (_, entry, node) => {
      expect([node.name, node.summary]).toEqual([entry.name, entry.summary]);
    },
  );

  test.each(tree.filter(({ node }) => isGroup(node)).map(({ node }) => node.name))(
    "%s alone lists its commands, and suggests the nearest for any other word",
    async (name) => {
      const listed = await cli([name]);
      expect(listed).toMatchObject({ code: 0, err: "" });
      expect(listed.out).toContain(`Usage: zae-limiter ${name} <command>`);
      const wrong = await cli([name, "nonsense"]);
      expect(wrong).toMatchObject({ code: 2, out: "" });
      expect(wrong.err).toMatch(
        new RegExp(
          `^zae-limiter: there is no command "nonsense", did you mean \\S+\\? See zae-limiter ${name} --help\n$`,
        ),
      );
    },
  );
});

describe("every command", () => {
  test.each(named)("%s explains itself and all its options", async (path, words, leaf) => {
    const { code, out, err } = await cli([...words, "--help"], { columns: 100 });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(new RegExp(`^Usage: zae-limiter ${path}(\\|\\S+)?( |\n)`));
    for (const option of [...ownOptions(leaf), ...storeOptions(leaf), ...COMMON_OPTIONS]) {
      expect(out).toContain(option.flags);
    }
    expect(out.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect((await cli(["help", ...words], { columns: 100 })).out).toBe(out);
  });

  test.each(named)("%s refuses an option it does not have", async (path, words, leaf) => {
    const { code, out, err } = await cli([...words, ...required(leaf), "--no-such-option"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("unknown option '--no-such-option'");
    expect(err).toContain(`see zae-limiter ${path} --help`);
    expect(err.split("\n")).toHaveLength(2);
  });

  test.each(named)("%s has no two options of one name", (_, __, leaf) => {
    const names = [...ownOptions(leaf), ...storeOptions(leaf), ...COMMON_OPTIONS].flatMap(
      (option) => flagsOf(option).names,
    );
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  const readers = named.filter(([, , leaf]) => leaf.store === "read");
  test.each(readers)("%s makes no file by looking for one", async (path, words, leaf) => {
    const place = join(folder, path.replaceAll(" ", "-"));
    const args = (leaf.arguments ?? []).map(() => "gpt-4");
    const options = [...required(leaf), "--url", `sqlite:${join(place, "limits.db")}`];
    const { code } = await cli([...words, ...args, ...options]);
    expect([0, 1]).toContain(code);
    expect(existsSync(place)).toBe(false);
  });

  test.each(readers)("%s does not change a byte of a file", async (_, words, leaf) => {
    const args = (leaf.arguments ?? []).map(() => "gpt-4");
    const options = [...required(leaf), "--url", `sqlite:${file}`];
    // Endless commands are ended after their first output.
    const onOutput: Circumstances["onOutput"] = (_, interrupt) => interrupt("SIGINT");
    const { code } = await cli([...words, ...args, ...options], { onOutput });
    // A command that goes on until it is interrupted ends as shells expect it.
    expect([0, 1, 130]).toContain(code);
    for (const which of ["last", "all"] as const) {
      if (!isDeepStrictEqual(bytes(), stored)) await letGo(which);
    }
    expect(bytes()).toEqual(stored);
  });
});
