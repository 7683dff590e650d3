/** `completion`: bash runs its script for real; the others are read. */

import { execFileSync } from "node:child_process";
import { isGroup } from "@zae-limiter/cli/frame/command.ts";
import { loadTree, REGISTRY } from "@zae-limiter/cli/frame/registry.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { describe, expect, test } from "vitest";
import { expectShape } from "../shape.ts";

const script = async (shell: string) => (await cli(["completion", shell])).out;

/** Returns the words that bash offers for the last word. */
function offered(bash: string, words: readonly string[]): string[] {
  const program = `${bash}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length - 1}
_zae_limiter
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync("bash", ["--norc", "-c", program], { encoding: "utf8" });
  return out.split("\n").filter((line) => line !== "");
}

describe("in bash", () => {
  test("words, commands, options and values are offered where they belong", async () => {
    const bash = await script("bash");
    const names = REGISTRY.filter(({ shortFor }) => shortFor === undefined).map(
      ({ name }) => name.split(" ")[0],
    );
    expect(offered(bash, ["zae-limiter", ""])).toEqual(expect.arrayContaining([...names, "stack"]));
    expect(offered(bash, ["zae-limiter", "de"])).toEqual(["demo"]);
    expect(offered(bash, ["zae-limiter", "stack", "de"])).toEqual(["deploy", "delete"]);
    expect(offered(bash, ["zae-limiter", "deploy", "--lambda-m"])).toEqual(["--lambda-memory"]);
    expect(offered(bash, ["zae-limiter", "nam"])).toEqual(["namespace"]);
    expect(offered(bash, ["zae-limiter", "gateway", "k"])).toEqual(["key"]);
    expect(offered(bash, ["zae-limiter", "gateway", "key", "cr"])).toEqual(["create"]);
    expect(offered(bash, ["zae-limiter", "gateway", "key", "create", "--ent"])).toEqual([
      "--entity",
    ]);
    expect(offered(bash, ["zae-limiter", "gateway", "--open", "--upstream-"])).toEqual([
      "--upstream-timeout",
    ]);
    expect(offered(bash, ["zae-limiter", "entity", "set-l"])).toEqual(["set-limits"]);
    expect(offered(bash, ["zae-limiter", "entity", "show", "x", "--js"])).toEqual(["--json"]);
    expect(offered(bash, ["zae-limiter", "acquire", "a", "b", "--con"])).toEqual(["--consume"]);
    expect(offered(bash, ["zae-limiter", "usage", "list", "--window", ""])).toEqual([
      "hourly",
      "daily",
      "monthly",
    ]);
    expect(offered(bash, ["zae-limiter", "completion", "z"])).toEqual(["zsh"]);
    expect(offered(bash, ["zae-limiter", "resource", "list", "--url", ""])).toEqual([]);
    expect(offered(bash, ["zae-limiter", "namespace", "list", "--namesp"])).toEqual([]);
  });
});

describe.each(["bash", "zsh", "fish"])("the completion script for %s", (shell) => {
  test("every command is there", async () => {
    const text = await script(shell);
    for (const { entry, node } of await loadTree()) {
      for (const word of entry.name.split(" ")) expect(text).toContain(word);
      if (isGroup(node)) for (const { name } of node.commands) expect(text).toContain(name);
    }
  });

  test("a completion script is JSON for programs", async () => {
    const { code, out } = await cli(["completion", shell, "--json"]);
    expect(code).toBe(0);
    const value = JSON.parse(out) as { script: string };
    expectShape({ shell: "text", script: "text" }, value);
    expect(`${value.script.trimEnd()}\n`).toBe(await script(shell));
  });
});

test("in zsh, colons within descriptions and words are escaped, and quotes closed", async () => {
  const zsh = await script("zsh");
  expect(zsh).toMatch(/^#compdef zae-limiter\n/);
  expect(zsh).toContain("'--json:print JSON instead of text'");
  expect(zsh).toContain("sqlite\\:<file>");
  // Bash reads the same quotes, so it can check whether all are closed.
  execFileSync("bash", ["-n"], { input: zsh });
});

test("in fish, conditions keep commands apart", async () => {
  const fish = await script("fish");
  expect(fish).toContain("-n '__fish_use_subcommand' -f -a entity -d");
  expect(fish).toContain(
    "-n '__fish_seen_subcommand_from usage; and __fish_seen_subcommand_from list' " +
      "-s w -l window -r -f -a 'hourly daily monthly' -d 'by hour, day or month; without it the finest that was counted'",
  );
});

test("another shell is refused", async () => {
  const { code, out, err } = await cli(["completion", "tcsh"]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain("Allowed choices are bash, zsh, fish");
});
