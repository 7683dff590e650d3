/** Every command line in the documents can be read by the commands, in their present spelling. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "@zae-limiter/cli/frame/build.ts";
import { isGroup } from "@zae-limiter/cli/frame/command.ts";
import { type Branch, loadTree } from "@zae-limiter/cli/frame/registry.ts";
import { CommanderError } from "commander";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const BLOCK_PATTERN = /^[ \t]*```(?:sh|bash|text|yaml|yml)\n(.*?)^[ \t]*```$/gms;
const LINE_PATTERN = /^(?:[^#\n]*[ (])?(?:npx )?zae-limiter ((?:[^\n\\]|\\\n?)+)$/gm;
const SPAN_PATTERN = /`(?:npx )?zae-limiter ([^`<]+)`/g;
/** One word of a shell, quoted or not; a comment, a pipe or a redirection ends the command. */
const WORD_PATTERN = /\s*(?:#.*|[|>&)].*|"([^"]*)"|'([^']*)'|([^\s"'|>&)]+))/gs;
/** In a sentence a command may be named without what it needs. */
const INCOMPLETE = [
  "commander.missingArgument",
  "commander.optionMissingArgument",
  "commander.missingMandatoryOptionValue",
];

interface CommandLine {
  readonly path: string;
  readonly text: string;
  readonly isWhole: boolean;
}

const TREE = await loadTree();

test("every command line in the documents has a command, its options and its arguments", async () => {
  const lines = documents().flatMap(commandLinesOf);
  expect(lines.length).toBeGreaterThan(150);
  const problems = await Promise.all(lines.map(problemOf));
  expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
});

test.each([
  ["entity set-limit key-1", /there is no command "set-limit"/],
  ["system set-defaults -l rpm:1", /set-limits/],
  ["deploy --name my-app", /stack deploy/],
  ["peek key-1 gpt-4 --jsn", /unknown option/],
  ["peek", /missing required argument/],
])("an outdated command line is found: %s", async (text, expected) => {
  expect(await problemOf({ path: "a.md", text, isWhole: true })).toMatch(expected);
});

function documents(): string[] {
  const folders = ["docs", "examples", "changes"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((path) => `${folder}/${path}`),
  );
  return [...readdirSync(ROOT), ...folders].filter(
    (path) => path.endsWith(".md") && path !== "CHANGELOG.md" && !path.includes("node_modules"),
  );
}

function commandLinesOf(path: string): CommandLine[] {
  const page = readFileSync(join(ROOT, path), "utf8");
  const blocks = [...page.matchAll(BLOCK_PATTERN)].map(([, block = ""]) => block);
  const found = (text: string, isWhole: boolean) => ({ path, text: text.trim(), isWhole });
  return [
    ...blocks.flatMap((block) =>
      [...block.matchAll(LINE_PATTERN)].map(([, text = ""]) => found(text, true)),
    ),
    ...[...page.replace(BLOCK_PATTERN, "").matchAll(SPAN_PATTERN)].map(([, text = ""]) =>
      found(text, false),
    ),
  ];
}

/** Returns what is wrong with a command line, or `undefined`. */
async function problemOf({ path, text, isWhole }: CommandLine): Promise<string | undefined> {
  const words = wordsOf(text);
  const branch = branchOf(words);
  if (branch === undefined) return `${path}: there is no command: ${text}`;
  const { entry, node } = branch;
  const rest = words.slice(entry.name.split(" ").length);
  if (entry.shortFor !== undefined) return `${path}: say ${entry.shortFor} ${text}`;
  const leaf = isGroup(node)
    ? node.commands.find(({ alias }) => alias !== undefined && alias === rest[0])
    : undefined;
  if (leaf !== undefined) return `${path}: say ${leaf.name}: ${text}`;
  const command = build(node, "zae-limiter", async () => undefined);
  for (const each of [command, ...command.commands]) {
    each.exitOverride().configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  }
  try {
    await command.parseAsync(rest, { from: "user" });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError && error.code === "commander.helpDisplayed")
      return undefined;
    if (error instanceof CommanderError && !isWhole && INCOMPLETE.includes(error.code)) {
      return undefined;
    }
    return `${path}: ${error instanceof Error ? error.message : error}: ${text}`;
  }
}

/** Returns the command with the most words of the line. */
function branchOf(words: readonly string[]): Branch | undefined {
  const two = words.slice(0, 2).join(" ");
  return [two, words[0]]
    .map((name) => TREE.find(({ entry }) => entry.name === name))
    .find((branch) => branch !== undefined);
}

function wordsOf(text: string): string[] {
  const words = [...text.replaceAll("\\\n", " ").matchAll(WORD_PATTERN)];
  const end = words.findIndex(
    ([, double, single, bare]) => (double ?? single ?? bare) === undefined,
  );
  return words
    .slice(0, end < 0 ? undefined : end)
    .map(([, double, single, bare]) => double ?? single ?? bare ?? "")
    .filter((word) => word !== "…");
}
