/** A person with a browser in front of a dashboard. */

import {
  type Served,
  type ServeOptions,
  serveDashboard,
} from "@zae-limiter/dashboard/server/serve.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, inject } from "vitest";

/**
 * Every window would load two pages of the address bar, in a process of their own: a third of the
 * time of the browser. The list replaces that of Playwright, so what calls the network is here too.
 */
const UNUSED =
  "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup," +
  "MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PreconnectToSearch";

/** Opens dashboards, and closes what it has opened after each test. */
export class Visitor {
  readonly #closings: (() => Promise<unknown>)[] = [];
  #browser: Browser | undefined;

  async start(args: readonly string[] = []): Promise<Browser> {
    const found = inject("chromium");
    if ("skipped" in found) throw new Error(found.skipped);
    return chromium.launch({ executablePath: found.path, args: ["--no-sandbox", UNUSED, ...args] });
  }

  async begin(): Promise<void> {
    this.#browser = await this.start();
  }

  async end(): Promise<void> {
    await this.#browser?.close();
  }

  async closeOpened(): Promise<void> {
    for (const close of this.#closings.splice(0).reverse()) await close();
  }

  async serve(repository: Repository, options: Partial<ServeOptions> = {}): Promise<Served> {
    const place = { host: "127.0.0.1", port: 0, readOnly: false, principal: "ann" };
    const served = await serveDashboard(repository, { ...place, ...options });
    this.#closings.push(() => served.close());
    return served;
  }

  /** Opens a view of a dashboard; a problem of the page fails the test. */
  async visit(
    served: Served,
    view: string,
    look: { dark?: boolean; width?: number } = {},
  ): Promise<Page> {
    const context = await (this.#browser as Browser).newContext({
      viewport: { width: look.width ?? 1280, height: 800 },
      colorScheme: look.dark === true ? "dark" : "light",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const problems: string[] = [];
    const { origin } = new URL(served.url);
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      // A refused request is logged by the browser, and the test checks the page.
      const isRefusal = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isRefusal) problems.push(message.text());
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(origin) && !url.startsWith("data:")) problems.push(`request to ${url}`);
    });
    this.#closings.push(async () => {
      await context.close();
      expect(problems).toEqual([]);
    });
    await page.goto(served.url);
    expect(new URL(page.url()).search).toBe("");
    await page.goto(`${origin}/#/${view}`);
    await page.getByText("live", { exact: true }).waitFor();
    return page;
  }
}

/** Returns serious findings of axe-core, as one line each. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // The policy of the page lets no other script in; evaluation by the debugger is not bound by it.
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const injected = (globalThis as unknown as { axe: typeof axe }).axe;
    return (await injected.run()).violations;
  });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes[0])}`);
}

/** A suite with a browser; without one it is a skip with its reason. */
export function describeBrowser(title: string, suite: (visitor: Visitor) => void): void {
  const found = inject("chromium");
  if ("skipped" in found) {
    describe.skip(`${title}: ${found.skipped}`, () => undefined);
    return;
  }
  describe(title, () => {
    const visitor = new Visitor();
    beforeAll(() => visitor.begin());
    afterEach(() => visitor.closeOpened());
    afterAll(() => visitor.end());
    suite(visitor);
  });
}
