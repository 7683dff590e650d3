/** The packed package works in an empty project: ESM, CommonJS, types, binary, every store. */

import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMPILER, type Installed, installPackage, manifest } from "./installed.ts";
import { loadedModules } from "./loaded-modules.ts";
import { storing, taking } from "./programs.ts";

const INSTALL_TIMEOUT_MS = 120_000;
/** For users that do not update often; the README names it. */
const OLD_COMPILER = "typescript@5.4.5";
/** The last compiler that is written in TypeScript itself. */
const LATER_COMPILER = "typescript-5.9@npm:typescript@5.9.3";
const SILENT_SUCCESS = { code: 0, err: "" };
const IMPORT = 'import { Repository } from "zae-limiter";';

let installed: Installed;
beforeAll(async () => {
  installed = await installPackage(OLD_COMPILER, LATER_COMPILER, "@types/node@20");
}, INSTALL_TIMEOUT_MS);
afterAll(() => installed?.remove());

describe("the tarball", () => {
  test("the tarball holds the build and the documents, and nothing else", () => {
    const expected =
      /^(dist\/.+\.(js|d\.ts)|dist\/sbom\.json|dist\/lambda\/\w+\.zip|dist\/(?:dashboard|loadtest)\/page\.html\.gz|dist\/((?:dashboard|loadtest)\/)?notices\.txt|schema\/(?:limits\.schema\.json|prices\.json|prices\.NOTICE\.md)|README\.md|LICENSE|CHANGELOG\.md|(?:dist\/cjs\/)?package\.json)$/;
    expect(installed.files.filter((path) => !expected.test(path))).toEqual([]);
    expect(installed.files).toEqual(
      expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "dist/cli/main.js"]),
    );
    expect(installed.files).toEqual(
      expect.arrayContaining(["README.md", "LICENSE", "CHANGELOG.md"]),
    );
    expect(installed.files).toEqual(
      expect.arrayContaining(["dist/lambda/aggregator.zip", "dist/lambda/provisioner.zip"]),
    );
  });

  test("the tarball has no source map that leads nowhere", async () => {
    const folder = join(installed.project, "node_modules", "zae-limiter");
    const code = installed.files.filter((path) => path.startsWith("dist/"));
    const texts = await Promise.all(code.map((path) => readFile(join(folder, path), "utf8")));
    expect(code.filter((_, at) => texts[at]?.includes("sourceMappingURL"))).toEqual([]);
  });

  test("the tarball installs without a word about deprecated packages or install scripts", () => {
    const said = `${installed.installation.out}${installed.installation.err}`;
    expect(said).not.toMatch(/deprecated|install-?scripts/i);
  });

  test("the tarball installs no other package, and takes less than 14 MB on disk", async () => {
    const lock = await readFile(join(installed.project, "package-lock.json"), "utf8");
    const { packages } = JSON.parse(lock) as {
      packages: Record<string, { dependencies?: object }>;
    };
    expect(packages["node_modules/zae-limiter"]?.dependencies).toBeUndefined();
    expect(Object.keys(packages).filter((path) => /libsql|aws|smithy/.test(path))).toEqual([]);
    const folder = join(installed.project, "node_modules", "zae-limiter");
    const sizes = await Promise.all(installed.files.map((path) => stat(join(folder, path))));
    const bytes = sizes.reduce((sum, { blocks }) => sum + 512 * blocks, 0);
    expect(bytes).toBeLessThan(14_000_000);
  });

  test("the tarball lists the packages that it contains for tools that look for defects", async () => {
    const folder = join(installed.project, "node_modules", "zae-limiter", "dist");
    const notices = await readFile(join(folder, "notices.txt"), "utf8");
    const sbom = JSON.parse(await readFile(join(folder, "sbom.json"), "utf8")) as {
      bomFormat: string;
      components: { name: string; version: string; purl: string }[];
    };
    expect(sbom.bomFormat).toBe("CycloneDX");
    const yaml = sbom.components.find(({ name }) => name === "yaml");
    expect(yaml?.purl).toBe(`pkg:npm/yaml@${yaml?.version}`);
    const listed = new Set(sbom.components.map(({ name, version }) => `${name} ${version}`));
    const named = [...notices.matchAll(/^-{80}\n(\S+ \S+), /gm)].map(([, each]) => each);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((each) => !listed.has(each ?? ""))).toEqual([]);
  });

  test("the tarball names the license of every package that it contains", async () => {
    const folder = join(installed.project, "node_modules", "zae-limiter", "dist");
    const notices = await readFile(join(folder, "notices.txt"), "utf8");
    for (const name of ["@aws-sdk/client-dynamodb", "@smithy/core", "undici", "yaml", "ulid"]) {
      expect(notices).toMatch(new RegExp(`^${name} [0-9.]+, \\S+$`, "m"));
    }
  });
});

describe(`on Node ${process.versions.node}`, () => {
  test("the package is imported as an ES module, without a warning", async () => {
    const ran = await installed.script("import.mjs", `${IMPORT} ${storing("memory:")}`);
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "rpm:100/min system\n" });
  });

  test("the package is required from CommonJS, without a warning", async () => {
    const ran = await installed.script(
      "require.cjs",
      `const { Repository } = require("zae-limiter"); (async () => { ${storing("memory:")} })();`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "rpm:100/min system\n" });
  });

  test("the package is one library, from whichever entry point it comes, with names of classes", async () => {
    const ran = await installed.script(
      "identity.mjs",
      `import * as library from "zae-limiter";
       import { lambdaPackage } from "zae-limiter/infra";
       const made = Object.entries(library).filter(([, value]) => typeof value === "function");
       const renamed = made.filter(([name, value]) => value.name !== name);
       try { lambdaPackage("unknown"); } catch (error) {
         console.log(error instanceof library.InfrastructureError, error.name, renamed.length);
       }`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "true InfrastructureError 0\n" });
  });

  test("the package starts with four files and without cryptography, where memory is the store", async () => {
    const code = `
      const limiter = await RateLimiter.open("memory:");
      const request = { entityId: "key-1", resource: "gpt-4", limits: ["rpm:1"], consume: { rpm: 1 } };
      await (await limiter.acquire(request)).commit();`;
    const ran = await loadedModules(installed, code);
    const files = ran.out.split("\n").filter((name) => name.includes("/zae-limiter/dist/"));
    expect(files.length).toBeLessThanOrEqual(4);
    const tell = 'console.log(process.moduleLoadList.filter((name) => name.includes("crypto/")));';
    const imported = 'import { RateLimiter } from "zae-limiter";';
    const bare = await installed.script("start.mjs", `${imported} ${code} ${tell}`);
    expect(bare).toEqual({ ...SILENT_SUCCESS, out: "[]\n" });
  });

  test("the package limits HTTP in ES modules and in CommonJS, without any framework installed", async () => {
    const names = ["express", "fastify", "hono", "fetch"];
    const check = `Promise.all(entries.map(async (entry) => [
         typeof entry.rateLimit, typeof entry.leaseOf, typeof entry.keyOfEntityId,
       ].join())).then((kinds) => console.log(kinds.join(" ")));`;
    const kinds = "function,function,function";
    const out = `${names.map(() => kinds).join(" ")}\n`;
    const imported = await installed.script(
      "http.mjs",
      `${names.map((name) => `import * as ${name}Entry from "zae-limiter/${name}";`).join("\n")}
       const entries = [${names.map((name) => `${name}Entry`).join(", ")}];
       await ${check}`,
    );
    expect(imported).toEqual({ ...SILENT_SUCCESS, out });
    const required = await installed.script(
      "http.cjs",
      `const entries = ${JSON.stringify(names)}.map((name) => require("zae-limiter/" + name));
       ${check}`,
    );
    expect(required).toEqual({ ...SILENT_SUCCESS, out });
  });

  test("the package limits the requests of node:http", async () => {
    const ran = await installed.script(
      "server.mjs",
      `import { createServer } from "node:http";
       import { rateLimit } from "zae-limiter/express";
       const limit = rateLimit({ limits: ["rpm:1"] });
       const server = createServer((request, response) => {
         limit(request, response, () => response.end("hello"));
       }).listen(0, "127.0.0.1", async () => {
         const url = "http://127.0.0.1:" + server.address().port;
         console.log((await fetch(url)).status, (await fetch(url)).status);
         server.close();
         server.closeAllConnections();
       });`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "200 429\n" });
  });

  itUnless(isBuiltin("node:sqlite") && "this Node has node:sqlite")(
    "the package says which line to paste when there is no SQLite driver for a file",
    async () => {
      const ran = await installed.script("no-driver.mjs", taking(1));
      expect(ran.code).not.toBe(0);
      expect(ran.err).toMatch(/No SQLite driver: Node [0-9.]+ has no .*: npm install libsql\n/);
      const demo = await installed.run(
        join(installed.project, "node_modules", ".bin", "zae-limiter"),
        "demo",
      );
      expect(demo).toMatchObject(SILENT_SUCCESS);
    },
  );

  test("the package has a default store, a SQLite file in which processes share a limit", async () => {
    if (!isBuiltin("node:sqlite")) await installed.install("libsql");
    const first = await installed.script("default-store.mjs", taking(40));
    expect(first).toEqual({ ...SILENT_SUCCESS, out: "60\n" });
    const second = await installed.script("default-store-again.mjs", taking(10));
    expect(second).toEqual({ ...SILENT_SUCCESS, out: "50\n" });
    const file = join(installed.project, ".zae-limiter", "limits.db");
    expect((await readFile(file)).subarray(0, 15).toString()).toBe("SQLite format 3");
  });
});

describe("the build for CommonJS", () => {
  /** Makes Node load it, as other loaders do that cannot require ES modules. */
  const LOADER = "--no-experimental-require-module";

  test("the build for CommonJS is not loaded by Node: both kinds of imports share one library", async () => {
    const ran = await installed.script(
      "shared.cjs",
      `const required = require("zae-limiter");
       const { rateLimit } = require("zae-limiter/express");
       import("zae-limiter").then(async (imported) => {
         const limiter = await imported.RateLimiter.open("memory:");
         console.log(required.RateLimiter === imported.RateLimiter, typeof rateLimit({ limiter }));
       });`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "true function\n" });
  });

  test("the build for CommonJS works without ES modules, and its errors are those of the other build", async () => {
    const ran = await installed.script(
      "loader.cjs",
      `const library = require("zae-limiter");
       const { rateLimit } = require("zae-limiter/express");
       const { VirtualTime } = require("zae-limiter/testing");
       const request = { entityId: "a", resource: "r", limits: ["rpm:1"], consume: { rpm: 2 } };
       (async () => {
         const limiter = await library.RateLimiter.open("memory:");
         const error = await limiter.acquire(request).catch((error) => error);
         const url = "dynamodb://table?endpoint=http://127.0.0.1:1";
         const away = await library.RateLimiter.open(url, { timeoutMs: 300 }).catch((error) => error);
         const other = await import("zae-limiter");
         console.log(other.RateLimiter === library.RateLimiter, typeof rateLimit({ limiter }));
         console.log(error instanceof other.RateLimitExceeded, error instanceof other.ZaeLimiterError);
         console.log(error instanceof other.ValidationError, away instanceof other.InfrastructureError);
         console.log(away.code, typeof VirtualTime, typeof require("zae-limiter/fastify").default);
       })();`,
      LOADER,
    );
    const out = "false function\ntrue true\nfalse true\nZAEL_UNAVAILABLE function function\n";
    expect(ran).toMatchObject({ code: 0, out });
  });

  test.each([
    ["commonjs and node10", ["--module", "commonjs", "--moduleResolution", "node10"]],
    ["node16", ["--module", "node16"]],
  ])("the build for CommonJS has types for programs with the settings %s", async (name, flags) => {
    const file = `program-${name.replaceAll(" ", "-")}.ts`;
    await writeFile(
      join(installed.project, file),
      `import { RateLimiter, RateLimitExceeded } from "zae-limiter";
       import { rateLimit } from "zae-limiter/express";
       import plugin from "zae-limiter/fastify";
       export const limit = rateLimit({ limits: ["rpm:5"] });
       export const register: typeof import("zae-limiter/fastify").rateLimit = plugin;
       export const codeOf = (error: unknown): string =>
         error instanceof RateLimitExceeded ? error.code : "";
       export const open = (): Promise<RateLimiter<"rpm">> => RateLimiter.open("memory:");
       export const wrong: number = codeOf(1);\n`,
    );
    const compiler = join(installed.project, "node_modules", "typescript", "bin", "tsc");
    const common = ["--noEmit", "--strict", "--skipLibCheck", "false", "--types", "node"];
    const libraries = ["--target", "es2022", "--lib", "es2022,esnext.disposable"];
    const ran = await installed.run(compiler, ...common, ...libraries, ...flags, file);
    expect(ran.out.trim().split("\n")).toEqual([
      expect.stringMatching(/'string' is not assignable to type 'number'/),
    ]);
  });
});

describe("AWS code", () => {
  const AWS_CHUNK = /\/dist\/chunks\/sdk-data-/;

  test("AWS code is not loaded by importing, nor by the embedded stores", async () => {
    for (const url of ["memory:", "sqlite:no-aws.db"]) {
      const ran = await loadedModules(
        installed,
        `
        const limiter = await RateLimiter.open("${url}");
        await limiter.repository.limits.setSystem(["rpm:100"]);
        const lease = await limiter.acquire(
          { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } },
        );
        await lease.commit();
        await limiter.close();`,
      );
      expect(ran).toMatchObject(SILENT_SUCCESS);
      const modules = ran.out.split("\n").filter((name) => name.includes("/zae-limiter/dist/"));
      expect(modules).not.toEqual([]);
      const texts = await Promise.all(modules.map((url) => readFile(new URL(url), "utf8")));
      expect(
        modules.filter((_, at) => /node_modules\/@(aws|smithy)/.test(texts[at] ?? "")),
      ).toEqual([]);
    }
  });

  test("AWS code is loaded by opening a table, which proves that the test above would see it", async () => {
    const ran = await loadedModules(
      installed,
      `
      const url = "dynamodb://nowhere?endpoint=http://127.0.0.1:1";
      await Repository.open(url, { timeoutMs: 200 }).catch(({ code }) => console.log(code));`,
    );
    const lines = ran.out.split("\n");
    expect(lines).toContain("ZAEL_UNAVAILABLE");
    expect(lines.filter((name) => AWS_CHUNK.test(name))).toHaveLength(1);
    expect(lines.filter((name) => /node_modules\/(?!zae-limiter)/.test(name))).toEqual([]);
  });

  test("AWS code loads whole: every chunk of the package is a module that needs no other package", async () => {
    const chunks = join(installed.project, "node_modules", "zae-limiter", "dist", "chunks");
    const peers = /from "(aws-cdk-lib|constructs|libsql|better-sqlite3)/;
    const ran = await installed.script(
      "chunks.mjs",
      `process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
       import { readFileSync, readdirSync } from "node:fs";
       const folder = ${JSON.stringify(`${chunks}/`)};
       const files = readdirSync(folder).filter((name) => !${peers}.test(readFileSync(folder + name)));
       for (const name of files) await import(folder + name);
       console.log(files.length);`,
    );
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(Number(ran.out)).toBeGreaterThan((await readdir(chunks)).length - 5);
  });

  test("chunks have every name that others take from them later", async () => {
    const chunks = join(installed.project, "node_modules", "zae-limiter", "dist", "chunks");
    const ran = await installed.script(
      "late-names.mjs",
      `process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
       import { readFileSync, readdirSync } from "node:fs";
       const folder = ${JSON.stringify(`${chunks}/`)};
       const late = /\\{([^{}]*)\\} = await import\\("(\\.\\/[^"]+)"\\)/g;
       let count = 0;
       for (const name of readdirSync(folder)) {
         for (const [, names, chunk] of readFileSync(folder + name, "utf8").matchAll(late)) {
           const module = await import(folder + chunk);
           for (const each of names.split(",").map((part) => part.split(":")[0].trim())) {
             if (!each.startsWith("...") && !(each in module)) console.error(name, chunk, each);
             count += 1;
           }
         }
       }
       console.log(count);`,
    );
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(Number(ran.out)).toBeGreaterThan(50);
  });
});

describeEngines("a table", ({ endpoint }) => {
  const table = newName();
  const url = `dynamodb://${table}?endpoint=${endpoint}`;

  test("a table is made and limited by an ES module, and read by CommonJS", async () => {
    const made = await installed.script(
      "table.mjs",
      `import { RateLimiter, Repository } from "zae-limiter";
       const options = { endpoint: ${JSON.stringify(endpoint)} };
       await (await Repository.createTable("${table}", options)).close();
       ${taking(40, url)}`,
    );
    expect(made).toMatchObject({ code: 0, out: "60\n" });
    const read = await installed.script(
      "table.cjs",
      `const { RateLimiter } = require("zae-limiter"); (async () => { ${taking(10, url)} })();`,
    );
    expect(read).toMatchObject({ code: 0, out: "50\n" });
  });

  test("a table is opened with the credentials of a profile, of a command, and through the SDK", async () => {
    // To an address that is not of this machine, requests are signed with real credentials.
    const { port } = new URL(endpoint);
    const elsewhere = url.replace(endpoint, `http://db.example:${port}`);
    const keys = { Version: 1, AccessKeyId: "command", SecretAccessKey: "secret" };
    await writeFile(
      join(installed.project, "aws.ini"),
      `[profile file]\naws_access_key_id = file\naws_secret_access_key = secret\n
       [profile command]\ncredential_process = echo '${JSON.stringify(keys)}'\n`,
    );
    const { out, code } = await installed.script(
      "profiles.mjs",
      `import dns from "node:dns";
       import { Repository } from "zae-limiter";
       const { lookup } = dns;
       dns.lookup = (name, ...rest) => lookup(name === "db.example" ? "127.0.0.1" : name, ...rest);
       process.env.AWS_CONFIG_FILE = "aws.ini";
       process.env.AWS_REGION = "us-east-1";
       process.env.AWS_EC2_METADATA_DISABLED = "true";
       for (const profile of ["file", "command", "unknown"]) {
         process.env.AWS_PROFILE = profile;
         for (const transport of ["lean", "sdk"]) {
           const answer = await Repository.open(${JSON.stringify(elsewhere)}, { transport }).then(
             (repo) => repo.close().then(() => "opened"),
             ({ code }) => code,
           );
           console.log(profile, transport, answer);
         }
       }`,
    );
    expect({ out, code }).toEqual({
      code: 0,
      out: [
        "file lean opened",
        "file sdk opened",
        "command lean opened",
        "command sdk opened",
        "unknown lean ZAEL_INFRASTRUCTURE",
        "unknown sdk ZAEL_INFRASTRUCTURE",
        "",
      ].join("\n"),
    });
  });
});

describe("types", () => {
  const compilerOf = (name: string) => join(installed.project, "node_modules", name, "bin", "tsc");
  const COMPILERS: [string, () => string][] = [
    ["7", () => COMPILER],
    ["5.4", () => compilerOf("typescript")],
  ];
  // A compiler between the oldest and the newest, each night: it takes ten seconds.
  if (!NIGHTLY_ONLY) COMPILERS.push(["5.9", () => compilerOf("typescript-5.9")]);
  const SETTINGS = {
    strict: true,
    noEmit: true,
    target: "es2022",
    // Without that of browsers, which would take most of the time.
    lib: ["es2022", "esnext.disposable"],
    skipLibCheck: false,
  };

  const settings = async (name: string, options: object): Promise<string> => {
    const compilerOptions = { ...SETTINGS, ...options, types: ["node"] };
    const file = `tsconfig.${name}.json`;
    await writeFile(join(installed.project, "consumer.mts"), CONSUMER);
    await writeFile(
      join(installed.project, file),
      JSON.stringify({ compilerOptions, files: ["consumer.mts"] }),
    );
    return file;
  };

  test.each([
    ["nodenext", { module: "nodenext" }],
    ["bundler", { module: "esnext", moduleResolution: "bundler" }],
  ])("the declarations compile with the resolution of %s", async (name, options) => {
    const ran = await installed.run(COMPILER, "-p", await settings(name, options));
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  test("types of every entry point are complete, without the packages that the bundle contains", async () => {
    const entries = ["infra", "aggregator", "testing", "express", "fastify", "hono", "fetch"].map(
      (name) => `zae-limiter/${name}`,
    );
    await writeFile(
      join(installed.project, "entries.mts"),
      entries.map((name, at) => `export * as entry${at} from "${name}";\n`).join(""),
    );
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "false", "--module", "nodenext"];
    const libraries = ["--target", "es2022", "--lib", "es2023,esnext.disposable"];
    const ran = await installed.run(
      COMPILER,
      ...flags,
      ...libraries,
      "--types",
      "node",
      "entries.mts",
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  itUnless(NIGHTLY_ONLY)("types check with an old compiler", async () => {
    const old = join(installed.project, "node_modules", ".bin", "tsc");
    const ran = await installed.run(old, "-p", await settings("old", { module: "nodenext" }));
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  test.each(COMPILERS)(
    "types check with the defaults of TypeScript %s and no other types",
    async (name, compiler) => {
      await settings("bare", {});
      const file = `tsconfig.bare-${name}.json`;
      const compilerOptions = { strict: true, noEmit: true, module: "nodenext", types: [] };
      await writeFile(
        join(installed.project, file),
        JSON.stringify({ compilerOptions, files: ["consumer.mts", "server.mts"] }),
      );
      await writeFile(
        join(installed.project, "server.mts"),
        'import { rateLimit } from "zae-limiter/express";\n' +
          'export const limited = rateLimit({ limits: ["rpm:60"] });\n',
      );
      expect(await installed.run(compiler(), "-p", file)).toEqual({ ...SILENT_SUCCESS, out: "" });
    },
  );

  test("types refuse what is wrong, which proves that they are more than any", async () => {
    await writeFile(
      join(installed.project, "wrong.mts"),
      'import { Limit } from "zae-limiter";\nconst rate: string = Limit.parse("rpm:1").capacity;\n',
    );
    const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
    const ran = await installed.run(COMPILER, ...flags, "wrong.mts");
    expect(ran.code).not.toBe(0);
    expect(ran.out).toContain("'number' is not assignable to type 'string'");
  });
});

describe("the binary", () => {
  const cli = (...args: string[]) =>
    installed.run(join(installed.project, "node_modules", ".bin", "zae-limiter"), ...args);

  test("the binary says its version, which is that of the package", async () => {
    const { version } = await manifest();
    expect(await cli("--version")).toEqual({ ...SILENT_SUCCESS, out: `${version}\n` });
  });

  test("the binary finds the code of its Lambdas, which deploying needs", async () => {
    for (const lambda of ["aggregator", "provisioner"]) {
      const ran = await cli("lambda-export", "--lambda", lambda, "--output", `out/${lambda}.zip`);
      expect(ran).toMatchObject(SILENT_SUCCESS);
      const zip = await readFile(join(installed.project, "out", `${lambda}.zip`));
      expect(zip.subarray(0, 2).toString()).toBe("PK");
    }
  });

  test("the binary explains itself in its help", async () => {
    const ran = await cli("--help");
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(ran.out).toContain("demo");
  });

  test("the binary gives a demonstration without colours in a pipe, and leaves nothing behind", async () => {
    const before = await installed.leftovers();
    const ran = await cli("demo");
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(ran.out).toContain("this entity, any resource");
    expect(ran.out).toContain("ops    gives batch rpm:60/min");
    expect(ran.out).toContain("zae-limiter --help");
    expect(ran.out).not.toContain("\u001b");
    expect(await installed.leftovers()).toEqual(before);
  });

  test("the binary is built by npm run demo in a clone, which says so before anything else", async () => {
    const ran = await installed.npmRun("demo");
    expect(ran).toMatchObject({ code: 0, err: "building…\n" });
    expect(ran.out).toContain("zae-limiter --help");
  });

  test("the binary prints prices and templates as YAML and JSON", async () => {
    const prices = await cli("prices", "export", "--url", "sqlite:no-prices.db");
    expect(prices).toMatchObject({ code: 0, out: "prices: []\n" });
    await writeFile(
      join(installed.project, "limits.yaml"),
      "namespace: a\nsystem: { limits: [rpm:5] }\n",
    );
    const template = await cli("limits", "cfn-template", "-f", "limits.yaml", "--json");
    expect(template).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(template.out)).toHaveProperty("Resources");
  });

  test("the binary refuses an unknown command in one line, with the exit code 2", async () => {
    const { code, out, err } = await cli("destroy");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^zae-limiter: there is no command "destroy"[^\n]*\n$/);
  });
});

/** Uses the types as a consumer would. */
const CONSUMER = `
import {
  type AcquireRequest,
  type AuditEvent,
  type BackendCapabilities,
  type Lease,
  Limit,
  type OpenOptions,
  RateLimiter,
  RateLimitExceeded,
  Repository,
  type ResolvedLimits,
  ZaeLimiterError,
} from "zae-limiter";

const options: OpenOptions = { namespace: "tests", clock: () => Date.now() };
const repo: Repository = await Repository.open("memory:", options);
await repo.limits.setSystem([Limit.perMinute("rpm", 100, { burst: 150 }), "tpm:10000"]);
const resolved: ResolvedLimits | undefined = await repo.limits.resolve("key-1", "gpt-4");
const source: "entity" | "entity_default" | "parent" | "parent_default" | "resource" | "system" |
  undefined = resolved?.source;
const events: AuditEvent[] = await repo.audit.list("$SYSTEM");
const capabilities: BackendCapabilities = repo.capabilities;
const code = (error: unknown): string | undefined =>
  error instanceof RateLimitExceeded
    ? error.retryAfterHeader
    : error instanceof ZaeLimiterError
      ? error.code
      : undefined;
const limiter = new RateLimiter(repo);
const request: AcquireRequest = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
const answer: string = await limiter.run(request, (lease: Lease) => {
  lease.adjust({ tpm: 5 });
  return "hello";
});
const decision = await limiter.tryAcquire(request);
const wait: number = decision.granted ? 0 : decision.retryAfterSeconds;
console.log(source, events.length, capabilities, code, answer, wait);
await repo.close();
`;
