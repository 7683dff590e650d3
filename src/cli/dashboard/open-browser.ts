/** Opens an address in the user's browser, where there is one. */

import { spawn } from "node:child_process";

const COMMANDS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Starts the browser and does not wait; the address was printed, so a failure changes nothing. */
export function openBrowser(url: string): void {
  const [command, ...args] = COMMANDS[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
