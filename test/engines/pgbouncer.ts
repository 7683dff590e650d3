/**
 * A pooler before a PostgreSQL server, which gives each transaction another connection: the one of
 * this machine, or of Debian's package, which is unpacked and not installed.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "./engine-process.ts";
import { unprivileged } from "./postgres-server.ts";

const KEEPER = fileURLToPath(new URL("./keeper.mjs", import.meta.url));
const CACHE = fileURLToPath(
  new URL("../../node_modules/.cache/zae-limiter-packages", import.meta.url),
);
const PACKAGES = ["pgbouncer", "libc-ares2", "libevent-2.1-7"];
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 20;
/** Fewer than a process opens, so that each of its connections meets many of the server. */
const POOL_SIZE = 3;
const run = promisify(execFile);

export interface Pooler extends AsyncDisposable {
  readonly url: string;
}

/** Starts a pooler for the server of an address; throws with the reason when there is none. */
export async function startPgbouncer(server: string): Promise<Pooler> {
  const { program, libraries } = await found();
  const { hostname, port: serverPort, username, password, pathname } = new URL(server);
  const owner = unprivileged();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-pgbouncer-"));
  const config = join(folder, "pgbouncer.ini");
  const to = `host=${hostname} port=${serverPort} user=${username} password=${password}`;
  const settings = [
    "[databases]",
    `* = ${to}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${POOL_SIZE}`,
    "max_client_conn = 200",
    // Seconds until it tries a server again that could not be reached.
    "server_login_retry = 1",
  ];
  writeFileSync(config, `${settings.join("\n")}\n`);
  chmodSync(folder, 0o755);
  if (owner.uid !== undefined && owner.gid !== undefined) {
    for (const path of [folder, config]) chownSync(path, owner.uid, owner.gid);
  }
  const keeper = spawn(process.execPath, [KEEPER, program, "-q", config], {
    stdio: ["pipe", "ignore", "ignore"],
    cwd: folder,
    env: { ...process.env, LD_LIBRARY_PATH: libraries, ZAEL_KEEPER_REMOVES: folder },
    ...owner,
  });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await accepts(port))) {
    if (keeper.exitCode !== null || Date.now() > deadline) throw new Error("it does not start");
    await pause(POLL_MS);
  }
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    [Symbol.asyncDispose]: async () => {
      const ended = once(keeper, "exit");
      keeper.stdin.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function found(): Promise<{ readonly program: string; readonly libraries: string }> {
  const installed = "/usr/sbin/pgbouncer";
  if (existsSync(installed)) return { program: installed, libraries: "" };
  const home = join(CACHE, "pgbouncer");
  if (!existsSync(home)) {
    mkdirSync(CACHE, { recursive: true });
    const made = mkdtempSync(join(CACHE, "new-"));
    await run("apt-get", ["download", ...PACKAGES], { cwd: made });
    for (const name of readdirSync(made).filter((each) => each.endsWith(".deb"))) {
      await run("dpkg", ["-x", join(made, name), made]);
    }
    renameSync(made, home);
    chmodSync(home, 0o755);
  }
  const libraries = readdirSync(join(home, "usr", "lib"))
    .map((name) => join(home, "usr", "lib", name))
    .join(":");
  return { program: join(home, "usr", "sbin", "pgbouncer"), libraries };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("connect", () => socket.destroy());
    socket.on("error", () => resolve(false));
  });
}
