/** The packed package works for a stranger: ESM, CommonJS, types, binary, no AWS code unasked. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  COMPILER,
  type Installed,
  installPackage,
  manifest,
  type Ran,
} from "./package/installed.ts";

const INSTALL_TIMEOUT_MS = 120_000;
/** Read by people who do not update often; the README names it. */
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
  test("holds the build and the documents, and nothing else", () => {
    const expected =
      /^(dist\/.+\.(js|d\.ts)|dist\/lambda\/\w+\.mjs|dist\/notices\.txt|schema\/limits\.schema\.json|README\.md|LICENSE|CHANGELOG\.md|package\.json)$/;
    expect(installed.files.filter((path) => !expected.test(path))).toEqual([]);
    expect(installed.files).toEqual(
      expect.arrayContaining(["dist/index.js", "dist/index.d.ts", "dist/cli/main.js"]),
    );
    expect(installed.files).toEqual(
      expect.arrayContaining(["README.md", "LICENSE", "CHANGELOG.md"]),
    );
    expect(installed.files).toEqual(
      expect.arrayContaining(["dist/lambda/aggregator.mjs", "dist/lambda/provisioner.mjs"]),
    );
  });

  test("has no source map that leads nowhere", async () => {
    const folder = join(installed.project, "node_modules", "zae-limiter");
    const code = installed.files.filter((path) => path.startsWith("dist/"));
    const texts = await Promise.all(code.map((path) => readFile(join(folder, path), "utf8")));
    expect(code.filter((_, at) => texts[at]?.includes("sourceMappingURL"))).toEqual([]);
  });

  test("installs without a word about deprecated packages", () => {
    expect(`${installed.installation.out}${installed.installation.err}`).not.toMatch(/deprecated/i);
  });
});

describe(`on Node ${process.versions.node}`, () => {
  test("is imported as an ES module, without a warning", async () => {
    const ran = await installed.script("import.mjs", `${IMPORT} ${storing("memory:")}`);
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "rpm:100/min system\n" });
  });

  test("is required from CommonJS, without a warning", async () => {
    const ran = await installed.script(
      "require.cjs",
      `const { Repository } = require("zae-limiter"); (async () => { ${storing("memory:")} })();`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "rpm:100/min system\n" });
  });

  test("is one library, from whichever entry point it comes, and its classes have their names", async () => {
    const ran = await installed.script(
      "identity.mjs",
      `import * as library from "zae-limiter";
       import { lambdaPackage } from "zae-limiter/infra";
       const renamed = Object.entries(library).filter(([name, made]) => made.name !== name);
       try { lambdaPackage("unknown"); } catch (error) {
         console.log(error instanceof library.InfrastructureError, error.name, renamed.length);
       }`,
    );
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "true InfrastructureError 0\n" });
  });

  test("has a default store, a SQLite file in which processes share a limit", async () => {
    const first = await installed.script("default-store.mjs", taking(40));
    expect(first).toEqual({ ...SILENT_SUCCESS, out: "60\n" });
    const second = await installed.script("default-store-again.mjs", taking(10));
    expect(second).toEqual({ ...SILENT_SUCCESS, out: "50\n" });
    const file = join(installed.project, ".zae-limiter", "limits.db");
    expect((await readFile(file)).subarray(0, 15).toString()).toBe("SQLite format 3");
  });
});

describe("AWS code", () => {
  test("is not loaded by importing, nor by the embedded stores", async () => {
    for (const url of ["memory:", "sqlite:no-aws.db"]) {
      const ran = await loadedModules(`
        const limiter = await RateLimiter.open("${url}");
        await limiter.repository.limits.setSystem(["rpm:100"]);
        const lease = await limiter.acquire(
          { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } },
        );
        await lease.commit();
        await limiter.close();`);
      expect(ran).toMatchObject(SILENT_SUCCESS);
      const modules = ran.out.split("\n");
      expect(modules.filter((name) => name.includes("/zae-limiter/dist/"))).not.toEqual([]);
      expect(modules.filter((name) => /@aws|@smithy/.test(name))).toEqual([]);
    }
  });

  test("is loaded by opening a table, which proves that the test above would see it", async () => {
    const ran = await loadedModules(`
      const url = "dynamodb://nowhere?endpoint=http://127.0.0.1:1";
      await Repository.open(url, { timeoutMs: 200 }).catch(({ code }) => console.log(code));`);
    const lines = ran.out.split("\n");
    expect(lines).toContain("ZAEL_UNAVAILABLE");
    expect(lines.filter((name) => /node_modules\/@aws-sdk/.test(name)).length).toBeGreaterThan(0);
    expect(lines.filter((name) => /node_modules\/@smithy/.test(name)).length).toBeGreaterThan(0);
  });
});

describe("types", () => {
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
  ])("check with %s", async (name, options) => {
    const ran = await installed.run(COMPILER, "-p", await settings(name, options));
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  test("check with an old compiler", async () => {
    const old = join(installed.project, "node_modules", ".bin", "tsc");
    const ran = await installed.run(old, "-p", await settings("old", { module: "nodenext" }));
    expect(ran).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  test.each([
    ["7", () => COMPILER],
    ["5.9", () => join(installed.project, "node_modules", "typescript-5.9", "bin", "tsc")],
    ["5.4", () => join(installed.project, "node_modules", "typescript", "bin", "tsc")],
  ])("check with the defaults of TypeScript %s and no other types", async (name, compiler) => {
    await settings("bare", {});
    const file = `tsconfig.bare-${name}.json`;
    const compilerOptions = { strict: true, noEmit: true, module: "nodenext", types: [] };
    await writeFile(
      join(installed.project, file),
      JSON.stringify({ compilerOptions, files: ["consumer.mts"] }),
    );
    expect(await installed.run(compiler(), "-p", file)).toEqual({ ...SILENT_SUCCESS, out: "" });
  });

  test("refuse what is wrong, which proves that they are more than any", async () => {
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

  test("says its version, which is that of the package", async () => {
    const { version } = await manifest();
    expect(await cli("--version")).toEqual({ ...SILENT_SUCCESS, out: `${version}\n` });
  });

  test("finds the code of its Lambdas, which deploying needs", async () => {
    for (const lambda of ["aggregator", "provisioner"]) {
      const ran = await cli("lambda-export", "--lambda", lambda, "--output", `out/${lambda}.zip`);
      expect(ran).toMatchObject(SILENT_SUCCESS);
      const zip = await readFile(join(installed.project, "out", `${lambda}.zip`));
      expect(zip.subarray(0, 2).toString()).toBe("PK");
    }
  });

  test("explains itself", async () => {
    const ran = await cli("--help");
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(ran.out).toContain("demo");
  });

  test("gives a demonstration without colours in a pipe, and leaves nothing behind", async () => {
    const before = await installed.leftovers();
    const ran = await cli("demo");
    expect(ran).toMatchObject(SILENT_SUCCESS);
    expect(ran.out).toContain("this entity, any resource");
    expect(ran.out).toContain("ops    gives batch rpm:60/min");
    expect(ran.out).toContain("zae-limiter --help");
    expect(ran.out).not.toContain("\u001b");
    expect(await installed.leftovers()).toEqual(before);
  });

  test("refuses an unknown command in one line, with the exit code 2", async () => {
    const { code, out, err } = await cli("destroy");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^zae-limiter: there is no command "destroy"[^\n]*\n$/);
  });
});

/** Stores limits and resolves them; prints one line. */
function storing(url: string): string {
  return `
    const repo = await Repository.open(${JSON.stringify(url)});
    await repo.limits.setSystem(["rpm:100"]);
    const { limits, source } = await repo.limits.resolve("key-1", "gpt-4");
    console.log(String(limits), source);
    await repo.close();`;
}

/** Takes from the default store and prints what is left; a limit per day refills too slowly to see. */
function taking(tokens: number): string {
  return `
    import { RateLimiter } from "zae-limiter";
    const limiter = await RateLimiter.open();
    const call = { entityId: "key-1", resource: "gpt-4", limits: ["rpd:100/day"] };
    await limiter.run({ ...call, consume: { rpd: ${tokens} } }, () => undefined);
    console.log((await limiter.available(call)).rpd);
    await limiter.close();`;
}

/**
 * Runs code and prints every module it loaded. ES modules are seen by a loader hook, which lives in
 * a thread of its own and therefore writes to a file; CommonJS modules are in the cache of `require`.
 */
async function loadedModules(code: string): Promise<Ran> {
  await writeFile(
    join(installed.project, "hooks.mjs"),
    `import { appendFileSync } from "node:fs";
     export async function load(url, context, next) {
       appendFileSync("loaded.txt", url + "\\n");
       return next(url, context);
     }`,
  );
  await writeFile(
    join(installed.project, "register.mjs"),
    `import { register } from "node:module";
     register("./hooks.mjs", import.meta.url);`,
  );
  return installed.script(
    "loaded.mjs",
    `import { readFileSync, writeFileSync } from "node:fs";
     import { createRequire } from "node:module";
     writeFileSync("loaded.txt", "");
     const { RateLimiter, Repository } = await import("zae-limiter");
     ${code}
     console.log(readFileSync("loaded.txt", "utf8"));
     console.log(Object.keys(createRequire(import.meta.url).cache).join("\\n"));`,
    "--import",
    "./register.mjs",
  );
}

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
const source: "entity" | "entity_default" | "resource" | "system" | undefined = resolved?.source;
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
