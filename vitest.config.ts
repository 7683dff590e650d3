import { defineConfig } from "vitest/config";

// CommonJS packages are imported as Node imports them, so that tests and the built package agree.
const deps = { interopDefault: false };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/*.test.ts", "test/unit/**/*.test.ts"],
          deps,
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "contract",
          include: ["test/contract/**/*.test.ts"],
          deps,
          globalSetup: ["test/engines/setup.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          deps,
          globalSetup: ["test/engines/setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "types",
          include: [],
          typecheck: { enabled: true, only: true, include: ["test/types/**/*.test-d.ts"] },
        },
      },
    ],
  },
});
