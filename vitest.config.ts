import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { sourcePath } from "./scripts/entry-points.mjs";
import { LongestFirst } from "./test/support/longest-first.ts";

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/**
 * The folder with the compiled sources, which `npm test` makes: loading them as they are takes less
 * than having each project compile them. Without it a failure shows the lines of the sources.
 */
const COMPILED = process.env.ZAEL_COMPILED;
const IN_ROOM = /^@zae-limiter\/(?!test-)(\w+)\/((?!page\/).+)\.ts$/;
const compiled =
  COMPILED === undefined
    ? []
    : [
        { find: IN_ROOM, replacement: `${COMPILED}/$1/$2.js` },
        { find: /^(?:\.\.\/)+src\/index\.ts$/, replacement: `${COMPILED}/index.js` },
      ];
/** Sources by the names of the package, for examples that import it as users do. */
const source = (built: string) =>
  COMPILED === undefined ? `${ROOT}${sourcePath(built)}.ts` : `${COMPILED}/${built}.js`;

/** Tests that take minutes, or need the machine for themselves: `npm run soak:…`. */
const IS_SOAK = process.env.ZAEL_SOAK !== undefined;

/** Another major of the AI SDK than the one that is installed: `npm run test:ai-sdk-7`. */
const AI_SDK = process.env.ZAEL_AI_SDK;
const aiSdk =
  AI_SDK === undefined
    ? []
    : [
        { find: /^ai$/, replacement: `${AI_SDK}/dist/index.js` },
        { find: /^ai\/test$/, replacement: `${AI_SDK}/dist/test/index.js` },
      ];

const shared = {
  // Loading the same modules for each file would take half of the time. Projects whose files change
  // the process they run in say so.
  isolate: false,
  // CommonJS packages are imported as Node imports them, so that tests and the package agree.
  deps: { interopDefault: false },
  alias: compiled,
  // The SDK warns a user once; in a test run it would warn in every worker.
  // Suggested commands are the same however npm has started the tests.
  env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true", npm_command: "" },
  testTimeout: 60_000,
  hookTimeout: 60_000,
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
    // `npm run coverage`. The floors hold on every machine: lower them only with a reason.
    coverage: {
      include: ["src/**/*.ts", "packages/*/src/**/*.ts"],
      // The text table has a row for each of 500 files; the page in `coverage` has them too.
      reporter: ["text-summary", "html"],
      reportOnFailure: true,
      // Measured: 89.4, 83.6, 90.8 and 90.5.
      thresholds: { statements: 88, branches: 82, functions: 89, lines: 89 },
    },
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/*.test.ts", "packages/*/test/unit/**/*.test.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "simulation",
          include: ["packages/*/test/simulation/**/*.test.ts"],
        },
      },
      {
        test: {
          ...onEngines,
          name: "contract",
          include: ["packages/*/test/contract/**/*.test.ts"],
          // Examples import the package by its name; these tests run them on the sources.
          alias: [
            ...compiled,
            {
              find: /^zae-limiter\/(express|fastify|hono|fetch)$/,
              replacement: source("limiter/http/$1"),
            },
            { find: /^zae-limiter\/loadtest$/, replacement: source("loadtest/index") },
            {
              find: /^zae-limiter\/postgres$/,
              replacement: source("limiter/repository/stores/postgres-pool"),
            },
            {
              find: /^zae-limiter\/redis$/,
              replacement: source("limiter/repository/stores/redis-client"),
            },
            { find: /^zae-limiter\/testing$/, replacement: source("testing/index") },
            { find: /^zae-limiter$/, replacement: source("index") },
          ],
        },
      },
      {
        resolve: { alias: aiSdk },
        test: {
          ...withProcesses,
          name: "integration",
          isolate: true,
          include: ["test/package/**/*.test.ts", "packages/*/test/integration/**/*.test.ts"],
        },
      },
      {
        test: {
          ...withProcesses,
          name: "soak",
          isolate: true,
          include: ["packages/*/test/soak/**/*.test.ts"],
          exclude: IS_SOAK ? [] : ["packages/*/test/soak/**"],
          fileParallelism: false,
        },
      },
      {
        test: {
          ...onEngines,
          name: "browser",
          globalSetup: [...onEngines.globalSetup, "packages/dashboard/test/browser/setup.ts"],
          include: ["packages/*/test/browser/**/*.test.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "aws",
          isolate: true,
          globalSetup: ["packages/cli/test/aws/setup.ts"],
          include: ["packages/*/test/aws/**/*.test.ts"],
        },
      },
      // Needs Python 3 and, once, a registry of its packages: `npm run test:python`.
      {
        test: {
          ...onEngines,
          name: "python",
          globalSetup: [...onEngines.globalSetup, "test/python/setup.ts"],
          include: ["test/python/**/*.test.ts"],
          exclude: process.env["ZAEL_PYTHON"] === undefined ? ["test/python/**"] : [],
        },
      },
      // Costs money, on the account of the credentials: `npm run test:aws-account`.
      {
        test: {
          ...shared,
          name: "aws-account",
          include: ["test/aws-account/**/*.test.ts"],
          exclude:
            process.env["ZAEL_AWS_ACCOUNT_STACK"] === undefined ? ["test/aws-account/**"] : [],
        },
      },
      {
        test: {
          ...shared,
          name: "types",
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: ["test/types/**/*.test-d.ts"],
            // The other files of the repository have been checked by `check:types`.
            tsconfig: "tsconfig.types.json",
          },
        },
      },
    ],
  },
});
