/** The projects in `examples` run unchanged, on the sources. */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseUpstreams } from "@zae-limiter/gateway/upstreams-file.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { chatEvents } from "@zae-limiter/test-support/llm/shapes.ts";
import { stream, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const ROOMS = Object.fromEntries(
  ["aws", "limiter"].map((room) => [`@zae-limiter/${room}`, join(ROOT, "packages", room, "src")]),
);
const run = promisify(execFile);

let upstream: Upstream;
let folder: string;
beforeAll(async () => {
  upstream = await Upstream.start();
  // Inside of the project, so that its packages are found.
  folder = mkdtempSync(join(ROOT, "node_modules", ".examples-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await upstream.stop();
});

async function output(name: string): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    entryPoints: [join(ROOT, "examples", name, "index.mjs")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    alias: {
      "zae-limiter": join(ROOT, "src/index.ts"),
      "zae-limiter/llm": join(ROOT, "packages/limiter/src/llm/index.ts"),
      ...ROOMS,
    },
    logLevel: "error",
  });
  const env = { ...process.env, OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${upstream.url}/v1` };
  return (await run(process.execPath, ["--no-warnings", outfile], { env })).stdout;
}

test("examples/openai streams an answer and prints what is left", async () => {
  upstream.replyWith(stream(chatEvents(["Hello", " you"]), { done: true }));
  expect(await output("openai")).toBe("Hello you\n999 requests and 9979 tokens are left today\n");
});

test("examples/ai-sdk prints what is left", async () => {
  expect(await output("ai-sdk")).toBe("Hello: 999 requests and 9958 tokens are left today\n");
});

test("the upstreams of examples/gateway are valid", () => {
  const text = readFileSync(join(ROOT, "examples/gateway/upstreams.yaml"), "utf8");
  const env = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" };
  expect(parseUpstreams(text, env, false).upstreams.map(({ api, key }) => [api, key])).toEqual([
    ["openai", "a"],
    ["anthropic", "b"],
  ]);
});

test("the limits of examples/gateway are budgets of a team and its people, with alerts", () => {
  const text = readFileSync(join(ROOT, "examples/gateway/limits.yaml"), "utf8");
  const { system, entities, children, records } = parseManifest(text);
  expect(system?.limits.map(String)).toEqual(["rpm:60/min"]);
  const [team] = entities.get("team-a")?.get("@all")?.limits ?? [];
  expect(String(team)).toBe("usd:$500/month Europe/Berlin alerts 50,80,100");
  expect(children.get("team-a")?.get("@all")?.limits.map(String)).toEqual([
    "rpm:60/min",
    "usd:$20/month Europe/Berlin alerts 80",
  ]);
  expect(records.get("ann")).toMatchObject({ parent: "team-a", cascade: true });
});
