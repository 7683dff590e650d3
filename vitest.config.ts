import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

const SOURCES = fileURLToPath(new URL("src", import.meta.url));

const IS_SOAK = process.env.ZAEL_SOAK !== undefined;

/**
 * Tests that judge how fairly processes share a store in real time. They get the machine to
 * themselves. The others of their kind judge that only in a soak: `npm run soak:contention`.
 */
const WALL_CLOCK = IS_SOAK
  ? ["test/integration/**/*contention*.test.ts", "test/integration/aggregator/end-to-end.test.ts"]
  : ["test/integration/contention-sqlite.test.ts", "test/integration/sqlite-contention.test.ts"];

/** What takes minutes: `npm run soak:mutants`. */
const SOAK = [
  "test/simulation/contract.test.ts",
  "test/simulation/mutants.test.ts",
  "test/simulation/scenarios.test.ts",
];

const shared = {
  // Loading the same modules for each file would take half of the time. Projects whose files change
  // the process they run in say so.
  isolate: false,
  // CommonJS packages are imported as Node imports them, so that tests and the package agree.
  deps: { interopDefault: false },
  // Users hear of it once; a test run would hear of it in every worker.
  env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
  testTimeout: 60_000,
  hookTimeout: 60_000,
  sequence: { groupOrder: 2 },
};
const onEngines = { ...shared, globalSetup: ["test/engines/setup.ts"] };
/** These also start child processes from the sources. */
const withProcesses = {
  ...shared,
  globalSetup: [...onEngines.globalSetup, "test/support/built-sources.ts"],
};

export default defineConfig({
  test: {
    // Most tests wait for an engine or a child process: more workers than cores.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/*.test.ts", "test/unit/**/*.test.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "simulation",
          include: ["test/simulation/**/*.test.ts"],
          exclude: IS_SOAK ? [] : SOAK,
        },
      },
      {
        test: {
          ...onEngines,
          name: "contract",
          include: ["test/contract/**/*.test.ts"],
          // Examples import the package by its name; these tests run them on the sources.
          alias: [
            {
              find: /^zae-limiter\/(express|fastify|hono|fetch)$/,
              replacement: `${SOURCES}/http/$1.ts`,
            },
            { find: /^zae-limiter\/loadtest$/, replacement: `${SOURCES}/loadtest/index.ts` },
            { find: /^zae-limiter$/, replacement: `${SOURCES}/index.ts` },
          ],
        },
      },
      {
        test: {
          ...withProcesses,
          name: "integration",
          isolate: true,
          include: ["test/integration/**/*.test.ts"],
          exclude: WALL_CLOCK,
        },
      },
      {
        test: {
          ...withProcesses,
          name: "wall-clock",
          isolate: true,
          include: WALL_CLOCK,
          fileParallelism: false,
          // First: engines get slower with every table and every record that they keep. Not 0,
          // where files that run one by one come last.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...onEngines,
          name: "browser",
          globalSetup: [...onEngines.globalSetup, "test/browser/setup.ts"],
          include: ["test/browser/**/*.test.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "aws",
          isolate: true,
          globalSetup: ["test/aws/setup.ts"],
          include: ["test/aws/**/*.test.ts"],
          // Last: until then its environment is made, beside the other tests.
          sequence: { groupOrder: 3 },
        },
      },
      // Needs Python 3 and, once, a registry of its packages: `npm run test:python`.
      {
        test: {
          ...onEngines,
          name: "python",
          include: ["test/python/**/*.test.ts"],
          exclude: process.env["ZAEL_PYTHON"] === undefined ? ["test/python/**"] : [],
        },
      },
      {
        test: {
          ...shared,
          name: "types",
          include: [],
          typecheck: { enabled: true, only: true, include: ["test/types/**/*.test-d.ts"] },
        },
      },
    ],
  },
});
