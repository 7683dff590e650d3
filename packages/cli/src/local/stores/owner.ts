/** The user that a server runs as which refuses to run as root. */

import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { CommandFailure } from "../../frame/command.ts";
import type { Owner } from "./store.ts";

const USERS = ["postgres", "daemon"];
const OTHERS_MAY_PASS = 0o001;

/** Returns the user of the command; as root, another one that is here. */
export function unprivileged(server: string): Owner {
  if (process.getuid?.() !== 0) return {};
  for (const user of USERS) {
    const [uid, gid] = [idOf(user, "-u"), idOf(user, "-g")];
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new CommandFailure(
    `${server} does not run as root, and there is no user ${USERS.join(" or ")} here to run it as`,
  );
}

function idOf(user: string, flag: string): number | undefined {
  try {
    return Number(execFileSync("id", [flag, user], { encoding: "utf8", stdio: "pipe" }));
  } catch {
    return undefined;
  }
}

/** Refuses a folder that the user cannot reach. */
export function checkEntry(folder: string, { uid, gid }: Owner, server: string): void {
  if (uid === undefined || gid === undefined) return;
  const stats = statSync(folder);
  const passes = (stats.mode & OTHERS_MAY_PASS) !== 0 || stats.uid === uid || stats.gid === gid;
  if (!passes) {
    throw new CommandFailure(
      `${server} does not run as root, and the user ${uid} that it runs as cannot enter ${folder}. ` +
        `Run the command as another user, or chmod o+x ${folder}, or name another place with ` +
        "--folder",
    );
  }
  if (dirname(folder) !== folder) checkEntry(dirname(folder), { uid, gid }, server);
}
