import { parseUpstreams, parseWebhooks } from "@zae-limiter/gateway/upstreams-file.ts";
import { expect, test } from "vitest";

const env = { OPENAI_API_KEY: "sk-1", TEAM_KEY: "sk-2" };

const FIELDS = "url, models, api, key_env, key, aliases, max_output, prices";

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
  expect(read.tags).toEqual([]);
  expect(read.upstreams.map(({ url, models, api, key }) => [url.host, models, api, key])).toEqual([
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
    '4: upstreams[0].models: expected a list of names of models, and of beginnings like "gpt-", got "gpt-"',
    "5: upstreams[1].key_env: the variable ANTHROPIC_API_KEY has no key for " +
      "https://api.anthropic.com; set it, or use --open where clients have keys of their own, " +
      "or --keyless (key: none in a file) where none is needed",
    `6: upstreams[2]: expected an object like { ${FIELDS} }, got "just text"`,
    '8: upstreams[3].api: expected "openai", "anthropic" or "azure", got "bedrock"',
    `9: upstreams[3].modles: there is no "modles" here; expected ${FIELDS}`,
    '10: there is no "upstream" here; expected upstreams, tags, webhooks',
  ]);
});

test("a file that is no YAML, or has no upstreams, says so with a line", () => {
  expect(said("upstreams:\n  - url: [\n")).toMatch(/^Invalid config: line 3: /);
  for (const text of ["", "upstreams: []", "upstreams:\n", "7"]) {
    expect(said(text)).toContain("line 1: expected a list with at least one upstream");
  }
});

test("names, beginnings, aliases and the most output of models are read", () => {
  const text = `
upstreams:
  - url: https://api.openai.com/v1
    models: [gpt-, o3, "text-*", "ft:"]
    aliases:
      gpt-4o: [gpt-4o-2024-08-06, gpt-4o-2024-11-20]
    max_output: { gpt-4o: 16384, gpt-: 4096 }
  - { url: "http://127.0.0.1:11434/v1", key: none, max_output: 2048 }
`;
  const [openai, local] = parseUpstreams(text, env, false).upstreams;
  expect(openai?.models).toEqual(["gpt-", "o3", "text-*", "ft:"]);
  expect(Object.fromEntries(openai?.aliases ?? [])).toEqual({
    "gpt-4o": "gpt-4o",
    "gpt-4o-2024-08-06": "gpt-4o",
    "gpt-4o-2024-11-20": "gpt-4o",
  });
  expect([...(openai?.maxOutput ?? [])]).toEqual([
    ["gpt-4o", 16_384],
    ["gpt-", 4096],
  ]);
  expect([local?.key, local?.isKeyless, openai?.isKeyless]).toEqual([undefined, true, false]);
  expect([...(local?.maxOutput ?? [])]).toEqual([["*", 2048]]);
});

test("every wrong name, alias and number of a file is reported with its own line", () => {
  const text = `
upstreams:
  - url: https://api.openai.com/v1
    models:
      - gpt-4o
      - "@all"
      - 7
      - "a b-"
    aliases:
      gpt-4o: [gpt-4o-a]
      gpt-5:
        - gpt-4o-a
      _default_: [x]
      small: tiny
    max_output:
      gpt-4o: 0
      "*": many
    key: sk-secret-in-a-file
    one: 1
    two: 2
`;
  const message = said(text);
  expect(message).not.toContain("sk-secret");
  expect(message.split("; line ").map((line) => line.replace("Invalid config: line ", ""))).toEqual(
    [
      expect.stringMatching(/^6: upstreams\[0\]\.models\[1\]: "@all" is reserved/),
      "7: upstreams[0].models[2]: expected a name, got 7",
      expect.stringMatching(/^8: upstreams\[0\]\.models\[3\]: .* must start with/),
      '12: upstreams[0].aliases.gpt-5[0]: "gpt-4o-a" counts for "gpt-4o" already',
      expect.stringMatching(/^13: upstreams\[0\]\.aliases\._default_: .* must start with/),
      '14: upstreams[0].aliases.small: expected a list of names of models, got "tiny"',
      "16: upstreams[0].max_output.gpt-4o: must be positive, got 0",
      '17: upstreams[0].max_output.*: expected a whole number, got "many"',
      "18: upstreams[0].key: expected none; a key comes from the variable that key_env names",
      `19: upstreams[0].one: there is no "one" here; expected ${FIELDS}`,
      `20: upstreams[0].two: there is no "two" here; expected ${FIELDS}`,
    ],
  );
});

test("an upstream without a key cannot also name the variable of a key", () => {
  const text = "upstreams: [{ url: https://api.openai.com/v1, key: none, key_env: TEAM_KEY }]";
  expect(said(text)).toContain("upstreams[0].key: expected key: none or key_env, not both");
});

test("prices of an upstream are read, for its host alone, and a wrong one is named", () => {
  const text =
    'upstreams: [{ url: "https://llm.example:8443/v1", key: none, prices: { "llama*": { free: true } } }]';
  const [upstream] = parseUpstreams(text, env, false).upstreams;
  const price = { free: true };
  expect(upstream?.prices).toEqual([{ model: "llama*", price, upstream: "llm.example:8443" }]);
  const wrong =
    "upstreams:\n  - url: https://llm.example/v1\n    key: none\n    prices:\n      gpt: { input: 1.5 }\n";
  expect(said(wrong)).toMatch(/line 5: upstreams\[0\]\.prices\.gpt: expected dollars as text/);
  expect(said(wrong.replace("gpt: { input: 1.5 }", "- gpt"))).toContain("expected { model:");
});

test("tags of a file are read, and a wrong one is named with its line", () => {
  const upstreams = "upstreams: [{ url: https://api.openai.com/v1 }]\n";
  const read = parseUpstreams(`${upstreams}tags: [research, team.1]`, env, false);
  expect(read.tags).toEqual(["research", "team.1"]);
  expect(parseUpstreams(`${upstreams}tags:`, env, false).tags).toEqual([]);
  expect(said(`${upstreams}tags:\n  - research\n  - a b\n  - [x]`)).toBe(
    'Invalid config: line 4: tags[1]: expected 1 to 64 letters, digits and _ . -, got "a b"; ' +
      "line 5: tags[2]: expected 1 to 64 letters, digits and _ . -, got an array",
  );
  expect(said(`${upstreams}tags: research`)).toContain("tags: expected a list of names");
});

test("webhooks of a file have their secrets, and addresses that are secret, from the environment", () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  const slack = "https://hooks.slack.com/services/T/B/X";
  const text = `
webhooks:
  - { name: ops, url: "https://example.com/alerts", secret_env: OPS_SECRET }
  - { name: chat, url_env: SLACK_URL, format: slack }
  - { name: near, url: "http://10.0.0.1/", secret_env: OPS_SECRET, allow_private: true }
`;
  const read = parseWebhooks(text, { OPS_SECRET: secret, SLACK_URL: slack });
  const base = { format: "json", allowPrivate: false, secret };
  expect(read).toEqual([
    { ...base, name: "ops", url: "https://example.com/alerts" },
    { ...base, name: "chat", url: slack, format: "slack", secret: "" },
    { ...base, name: "near", url: "http://10.0.0.1/", allowPrivate: true },
  ]);
  const all = `${text}upstreams: [{ url: https://api.openai.com/v1 }]`;
  const file = parseUpstreams(all, { ...env, OPS_SECRET: secret, SLACK_URL: slack }, false);
  expect(file.webhooks).toEqual(read);
});

test("each webhook that is wrong is named with its line", () => {
  const entries = [
    '{ name: a, url: "http://example.com", secret_env: TEAM_KEY }',
    '{ name: b, url: "https://example.com", secret_env: TEAM_KEY }',
    '{ name: c, url: "https://example.com" }',
    '{ name: d, url: "https://example.com", secret_env: NOT_SET }',
    "{ name: e, format: slack }",
    '{ name: f, url: "https://example.com", format: slack }',
    '{ name: f, url: "https://example.com", format: slack }',
    '{ name: g, url: "https://example.com", secret: whsec_1 }',
    "https://example.com",
  ];
  const text = `upstreams: [{ url: https://api.openai.com/v1 }]\nwebhooks:\n${entries.map((entry) => `  - ${entry}\n`).join("")}`;
  expect(said(text).split("; line ")).toMatchInlineSnapshot(`
    [
      "Invalid config: line 3: webhooks[0]: expected https, got "http:"; http is for private addresses that are allowed",
      "4: webhooks[1]: expected TEAM_KEY to hold whsec_ and 24 to 64 bytes in base64",
      "5: webhooks[2]: expected secret_env with the name of a variable, got undefined",
      "6: webhooks[3]: the variable NOT_SET is not set",
      "7: webhooks[4]: expected url, or url_env with the name of a variable",
      "9: webhooks[6]: "f" is given twice",
      "10: webhooks[7]: there is no "secret" here; expected name, url, url_env, secret_env, format, allow_private",
      "11: webhooks[8]: expected an object like { name, url, url_env, secret_env, format, allow_private }, got "https://example.com"",
    ]
  `);
});
