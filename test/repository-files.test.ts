/** Files that GitHub and npm read: workflows, templates, and the address of the repository. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const MANIFEST = JSON.parse(read("package.json"));
const WORKFLOWS = readdirSync(join(ROOT, ".github/workflows")).map(
  (name) => `.github/workflows/${name}`,
);

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly steps: readonly Step[];
        readonly "timeout-minutes"?: number;
        readonly strategy?: { readonly matrix?: Readonly<Record<string, unknown>> };
      }
    >
  >;
}

test("npm reports known vulnerabilities on an install here", () => {
  expect(read(".npmrc")).not.toMatch(/^\s*audit\s*=\s*false/m);
});

describe.each(WORKFLOWS)("%s", (path) => {
  const workflow = parse(read(path)) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);

  test("every script that the workflow runs is in package.json", () => {
    const soaks = jobs.flatMap((job) => (job.strategy?.matrix?.["soak"] ?? []) as string[]);
    const named = steps.flatMap(({ run = "" }) =>
      [...run.matchAll(/npm run (?!\$)([\w:-]+)/g)].map(([, name]) => name as string),
    );
    const missing = [...named, ...soaks].filter((name) => MANIFEST.scripts[name] === undefined);
    expect(missing).toEqual([]);
    for (const [, file] of steps.flatMap(({ run = "" }) => [...run.matchAll(/node (\S+\.mjs)/g)])) {
      expect(read(file as string)).not.toBe("");
    }
  });

  test("every action of the workflow is pinned to a commit or a major version", () => {
    const loose = steps
      .flatMap(({ uses }) => uses ?? [])
      .filter((uses) => !/@([0-9a-f]{40}|v\d+)$/.test(uses));
    expect(loose).toEqual([]);
  });

  test("the workflow says its permissions, and every job has a time limit", () => {
    expect(workflow.permissions).toBeDefined();
    expect(jobs.map((job) => job["timeout-minutes"])).not.toContain(undefined);
  });
});

test("the suite runs on every Node that package.json supports, from the oldest on", () => {
  const { jobs } = parse(read(".github/workflows/test.yml")) as Workflow;
  const nodes = jobs["suite"]?.strategy?.matrix?.["node"];
  expect(nodes).toEqual(["20.19", "22", "24"]);
  expect(MANIFEST.engines.node).toBe(">=20.19");
  expect(read(".nvmrc").trim()).toBe("20.19");
});

test("templates and the updates of dependencies are readable YAML", () => {
  for (const name of ["bug.yml", "feature.yml", "config.yml"]) {
    expect(parse(read(`.github/ISSUE_TEMPLATE/${name}`))).toBeTypeOf("object");
  }
  expect(parse(read(".github/dependabot.yml")).version).toBe(2);
});

test("every file names the repository that package.json names", () => {
  const url = /^git\+(https:\/\/github\.com\/([\w-]+)\/[\w-]+)\.git$/.exec(MANIFEST.repository.url);
  const [, home, owner] = url as unknown as [string, string, string];
  expect(MANIFEST.homepage).toBe(`${home}#readme`);
  expect(MANIFEST.bugs).toEqual({ url: `${home}/issues` });
  expect(read("CODE_OF_CONDUCT.md")).toContain(`${home}/security/`);
  expect(read(".github/ISSUE_TEMPLATE/config.yml")).toContain(`${home}/security/`);
  expect(read(".github/CODEOWNERS")).toContain(`@${owner}/`);
});
