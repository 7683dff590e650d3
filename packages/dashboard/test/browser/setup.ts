/**
 * Finds a Chromium for the tests of the dashboard, and installs one where this process may use the
 * system's package manager. Builds the page, so that the tests see the sources as they are.
 */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

/** The path of Chromium, or why there is none. */
export type FoundBrowser = { readonly path: string } | { readonly skipped: string };

declare module "vitest" {
  interface ProvidedContext {
    chromium: FoundBrowser;
  }
}

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const INSTALL = ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"];
const BUNDLE = fileURLToPath(new URL("../../../../scripts/bundle-page.mjs", import.meta.url));

export function setup(project: TestProject): void {
  execFileSync(process.execPath, [BUNDLE], { stdio: "inherit" });
  const found = findBrowser();
  if ("skipped" in found) {
    if (process.env.CI) throw new Error(`The dashboard cannot be tested: ${found.skipped}`);
    console.warn(`skipped the dashboard's browser tests: ${found.skipped}`);
  }
  project.provide("chromium", found);
}

function findBrowser(): FoundBrowser {
  const find = () => [process.env.CHROMIUM ?? "", ...PLACES].find((path) => existsSync(path));
  const path = find();
  if (path !== undefined) return { path };
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    return { skipped: "no Chromium was found; set CHROMIUM to its path" };
  }
  try {
    execFileSync("apt-get", ["update"], { stdio: "ignore" });
    execFileSync("apt-get", INSTALL, { stdio: "ignore" });
  } catch (error) {
    return { skipped: `apt-get could not install Chromium: ${(error as Error).message}` };
  }
  const installed = find();
  return installed === undefined
    ? { skipped: "apt-get has installed no Chromium" }
    : { path: installed };
}
