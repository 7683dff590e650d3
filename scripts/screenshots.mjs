/**
 * Makes the images of the dashboard in docs/images, from `demo --dashboard` and the system's
 * Chromium. Build first. `--all DIR` shoots each page in light and dark, wide and narrow.
 */
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { chromium } from "playwright-core";
import { root } from "./entry-points.mjs";

const VIEWS = {
  overview: { path: "#/" },
  entity: { path: "#/entities?id=agent-7" },
  limits: { path: "#/limits", prepare: editLimits },
  usage: { path: "#/usage", prepare: stackByEntity },
  audit: { path: "#/audit" },
  namespaces: { path: "#/namespaces" },
};
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };
const TRAFFIC_MS = 12_000;

async function editLimits(page) {
  await page.getByRole("button", { name: "Edit gpt-4o" }).click();
  await page.getByLabel(/^Limits, as/).fill("rpm:60  tpm:100:2000");
  await page.getByText(/buckets? change/).waitFor();
}

async function stackByEntity(page) {
  await page.getByLabel("Stacked by").selectOption("entity");
  await page.getByRole("button", { name: "tpm" }).click();
}

/** Starts the demonstration and returns its address. */
async function startDemo() {
  const args = ["dist/cli/main.js", "demo", "--dashboard", "--port", "0", "--no-open", "--json"];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await new Promise((done, failed) => {
    child.stdout.once("data", (data) => done(String(data).split("\n")));
    child.once("close", () => failed(new Error("The demonstration has ended")));
  });
  return { url: JSON.parse(line).url, stop: () => child.kill("SIGINT") };
}

async function shoot(browser, url, { view, size, dark, path }) {
  const context = await browser.newContext({
    viewport: size,
    deviceScaleFactor: size === NARROW ? 2 : 1,
    colorScheme: dark ? "dark" : "light",
  });
  const page = await context.newPage();
  await page.goto(url);
  await page.goto(new URL(VIEWS[view].path, url.replace(/\?.*/, "")).href);
  await page.getByText("live", { exact: true }).waitFor();
  await VIEWS[view].prepare?.(page);
  await wait(view === "overview" ? TRAFFIC_MS : 1500);
  await page.screenshot({ path });
  await context.close();
}

const all = process.argv.indexOf("--all");
const folder = all === -1 ? join(root, "docs/images") : resolve(process.argv[all + 1]);
await mkdir(folder, { recursive: true });
const shots = Object.keys(VIEWS).flatMap((view) =>
  all === -1
    ? [{ view, size: WIDE, dark: false, name: view }]
    : [WIDE, NARROW].flatMap((size) =>
        [false, true].map((dark) => ({
          view,
          size,
          dark,
          name: `${view}-${size === WIDE ? "wide" : "narrow"}-${dark ? "dark" : "light"}`,
        })),
      ),
);
if (all === -1) {
  shots.push({ view: "overview", size: WIDE, dark: true, name: "overview-dark" });
  shots.push({ view: "entity", size: NARROW, dark: false, name: "phone" });
}
const demo = await startDemo();
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await Promise.all(
    shots.map(({ name, ...shot }) =>
      shoot(browser, demo.url, { ...shot, path: join(folder, `dashboard-${name}.png`) }),
    ),
  );
} finally {
  await browser.close();
  demo.stop();
}
