import {
  entryFor,
  modelNameProblem,
  routedLength,
} from "@zae-limiter/gateway/models/model-names.ts";
import { checkUpstream, upstreamFor } from "@zae-limiter/gateway/upstreams.ts";
import { expect, test } from "vitest";

const ENTRIES = ["gpt-", "gpt-4o", "o3", "text*", "meta/", "llama3.1:"];

test.each([
  ["gpt-4o", "gpt-4o"],
  ["gpt-4o-mini", "gpt-"],
  ["o3", "o3"],
  ["o3-mini", undefined],
  ["textual", "text*"],
  ["meta/llama", "meta/"],
  ["llama3.1:8b", "llama3.1:"],
  ["llama3", undefined],
  ["", undefined],
])("the name %j matches the entry %j of a list", (name, entry) => {
  expect(entryFor(ENTRIES, name)).toBe(entry);
});

test("an asterisk alone matches every name", () => {
  expect(entryFor(["*"], "anything")).toBe("*");
  expect(entryFor(["gpt-", "*"], "gpt-4")).toBe("gpt-");
});

test("for routing, every entry is a beginning", () => {
  expect(routedLength(ENTRIES, "o3-mini")).toBe(2);
  expect(routedLength(ENTRIES, "gpt-4o-mini")).toBe(6);
  expect(routedLength(["text*"], "textual")).toBe(4);
  expect(routedLength(ENTRIES, "claude-3")).toBe(-1);
});

test.each(["@all", "@other-total", "_default_", "", "a b", "a#b", "x".repeat(257)])(
  "no model can be called %j",
  (name) => expect(modelNameProblem(name)).toBeTypeOf("string"),
);

test.each(["gpt-4o", "@cf/meta/llama-3", "llama3.1:8b", "01-ai/yi-34b"])(
  "a model can be called %j",
  (name) => expect(modelNameProblem(name)).toBeUndefined(),
);

test("names go to the upstream with the longest beginning or the alias", () => {
  const at = (host: string, more: object) =>
    checkUpstream({ url: `https://${host}/v1`, key: "none", ...more }, {}, false);
  const upstreams = [
    at("rest.example", {}),
    at("openai.example", { models: ["gpt-", "o3"] }),
    at("mini.example", { models: ["gpt-4o-mini"], aliases: { small: ["gpt-4.1-nano"] } }),
  ];
  const hostFor = (name: string) => upstreamFor(upstreams, name)?.url.hostname;
  expect(
    ["gpt-4o", "o3-mini", "gpt-4o-mini", "gpt-4.1-nano", "small", "claude", ""].map(hostFor),
  ).toEqual([
    "openai.example",
    "openai.example",
    "mini.example",
    "mini.example",
    "mini.example",
    "rest.example",
    "rest.example",
  ]);
  expect(upstreamFor(upstreams.slice(1), "claude")).toBeUndefined();
});
