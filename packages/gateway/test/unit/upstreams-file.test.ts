import { parseUpstreams } from "@zae-limiter/gateway/upstreams-file.ts";
import { expect, test } from "vitest";

const env = { OPENAI_API_KEY: "sk-1", TEAM_KEY: "sk-2" };

/** Returns what is said about a file that cannot be used. */
function said(text: string, isOpen = false): string {
  try {
    parseUpstreams(text, env, isOpen);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("The file was accepted");
}

test("a file of upstreams is read, and keys come from the environment", () => {
  const text = `
upstreams:
  - url: https://api.openai.com/v1
    models: [gpt-]
  - { url: "https://api.anthropic.com/v1", key_env: TEAM_KEY }
`;
  const read = parseUpstreams(text, env, false);
  expect(read.map(({ url, models, api, key }) => [url.host, models, api, key])).toEqual([
    ["api.openai.com", ["gpt-"], "openai", "sk-1"],
    ["api.anthropic.com", [], "anthropic", "sk-2"],
  ]);
});

test("everything that is wrong in a file is named with its line", () => {
  const text = `
upstreams:
  - url: ftp://files.example
    models: gpt-
  - url: https://api.anthropic.com/v1
  - just text
  - url: https://api.openai.com/v1
    api: bedrock
    modles: []
upstream: 7
`;
  expect(said(text).split("; line ")).toEqual([
    'Invalid config: line 3: upstreams[0].url: expected a URL like https://api.openai.com/v1, got "ftp://files.example"',
    '4: upstreams[0].models: expected a list of beginnings of model names, got "gpt-"',
    "5: upstreams[1].key_env: the variable ANTHROPIC_API_KEY has no key for " +
      "https://api.anthropic.com; set it, or use --open",
    '6: upstreams[2]: expected an object like { url, models, api, key_env }, got "just text"',
    '8: upstreams[3].api: expected "openai" or "anthropic", got "bedrock"',
    '9: upstreams[3].modles: there is no "modles" here; expected url, models, api, key_env',
    '10: there is no "upstream" here; expected upstreams',
  ]);
});

test("a file that is no YAML, or has no upstreams, says so with a line", () => {
  expect(said("upstreams:\n  - url: [\n")).toMatch(/^Invalid config: line 3: /);
  for (const text of ["", "upstreams: []", "upstreams:\n", "7"]) {
    expect(said(text)).toContain("line 1: expected a list with at least one upstream");
  }
});
