/**
 * Makes a virtual environment from requirements.txt, starts moto in it, builds the command with its
 * Lambdas, and writes to the file that is its first argument how that went. Runs until stdin ends;
 * then moto ends, too. The environment stays for the next run, unless the requirements change.
 */

import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { compile } from "../../../../scripts/compile.mjs";

const [stateFile, cache] = process.argv.slice(2);
const run = promisify(execFile);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const START_TIMEOUT_MS = 60_000;

process.stdin.on("close", () => process.exit(0)).resume();

/** Written elsewhere and moved, so that nobody reads half of it. */
function tell(state) {
  writeFileSync(`${stateFile}.new`, JSON.stringify(state));
  renameSync(`${stateFile}.new`, stateFile);
}

async function environment() {
  const requirements = here("requirements.txt");
  const { stdout } = await run("python3", ["--version"]).catch(() => {
    throw new Error("python3 is not installed");
  });
  const hash = createHash("sha256").update(stdout).update(readFileSync(requirements));
  const folder = join(cache, hash.digest("hex").slice(0, 16));
  const python = join(folder, "bin", "python");
  const complete = join(folder, "complete");
  if (existsSync(complete)) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  await run("python3", ["-m", "venv", folder]);
  const options = ["--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check"];
  await run(python, ["-m", "pip", "install", ...options, "-r", requirements]);
  writeFileSync(complete, "");
  return python;
}

/** The sources as modules, next to the packages that they need; in `package` as users get them. */
async function build() {
  const root = here("../../../../");
  const folder = join(dirname(cache), `zae-limiter-aws-${process.pid}`);
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const bundled = [join(root, "scripts", "bundle-lambda.mjs"), join(folder, "lambda")];
  const packed = [join(root, "scripts", "bundle.mjs"), join(folder, "package")];
  const running = [bundled, packed].map((args) => run(process.execPath, args));
  // Whoever is stopped in the middle would write into a folder that is gone.
  process.prependListener("exit", () => {
    for (const { child } of running) child.kill("SIGKILL");
  });
  await Promise.all([...running, compile(folder)]);
  symlinkSync(join(folder, "lambda"), join(folder, "package", "lambda"));
  return folder;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function startMoto(python) {
  const port = await freePort();
  const moto = spawn(python, [here("moto_server.py"), String(port)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  moto.stderr.setEncoding("utf8").on("data", (text) => {
    said = (said + text).slice(-2000);
  });
  process.on("exit", () => moto.kill("SIGKILL"));
  const endpoint = `http://127.0.0.1:${port}`;
  const startedAt = Date.now();
  for (;;) {
    const answered = await fetch(`${endpoint}/moto-api/`).then(
      () => true,
      () => false,
    );
    if (answered) return endpoint;
    if (moto.exitCode !== null || Date.now() - startedAt > START_TIMEOUT_MS) {
      throw new Error(`moto does not start: ${said}`);
    }
    await pause(100);
  }
}

try {
  const python = await environment();
  const [endpoint, folder] = await Promise.all([startMoto(python), build()]);
  tell({ python, endpoint, build: folder });
} catch (error) {
  tell({ skipped: String(error.message).split("\n", 1)[0] });
}
