/** Says where the dashboard is, and waits for the end of the command. */

import { spawn } from "node:child_process";
import type { Terminal } from "../terminal/terminal.ts";

const COMMANDS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Prints the address, and opens the browser where the output is a terminal. */
export function announce(
  url: string,
  terminal: Terminal,
  { json, open, name = "Dashboard" }: { json: boolean; open: boolean; name?: string },
): void {
  if (json) terminal.out(`${JSON.stringify({ url })}\n`);
  else {
    const { title, faint } = terminal.palette;
    terminal.out(`${title(`${name}:`)} ${url}\n${faint("Ctrl-C ends it.")}\n`);
  }
  if (open && !json && terminal.isTerminal) openBrowser(url);
}

/** Ends with the interruption of the command. */
export function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

/** Starts the browser and does not wait; the address was printed, so a failure changes nothing. */
function openBrowser(url: string): void {
  const [command, ...args] = COMMANDS[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
