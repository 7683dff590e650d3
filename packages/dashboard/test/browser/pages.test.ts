/** The dashboard in a real browser, on SQLite and on local DynamoDB. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { usageItem } from "@zae-limiter/test-support/usage-item.ts";
import {
  describeBrowser,
  seriousFindings,
  type Visitor,
} from "@zae-limiter/test-support/visitor.ts";
import type { Page } from "playwright-core";
import { afterEach, describe, expect, test, vi } from "vitest";

const HOUR_MS = 3_600_000;
const EVIL = "<img src=x onerror=\"document.title='owned'\">";

/** Entities, limits of all levels, buckets and usage. */
async function furnish(repository: Repository): Promise<RateLimiter> {
  const { entities, limits, namespaceId } = repository;
  await entities.create({ id: "org", name: EVIL, metadata: { note: EVIL } });
  await entities.create({ id: "key-1", parentId: "org", cascade: true });
  await limits.setSystem(["rpm:600"]);
  await limits.setResource("gpt-4", ["rpm:100", "tph:1000/hour"], { principal: "maria" });
  await limits.setEntity("org", ["rpm:500"]);
  await limits.setEntity("key-2", ["rpm:7"], { resource: "gpt-4" });
  const limiter = new RateLimiter(repository);
  const consume = { rpm: 1, tph: 800 };
  await (await limiter.acquire({ entityId: "key-3", resource: "gpt-4", consume })).commit();
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
  const counters = { rpm: 3, tph: 1900 };
  for (const entity of ["key-3", "key-4"]) {
    const seed = {
      entity,
      window: "hourly",
      start: isoSeconds(hour),
      events: 8,
      counters,
    } as const;
    await repository[INTERNALS].records.store.put(usageItem(namespaceId, seed));
  }
  return limiter;
}

/** Returns what a chart wrote on its canvas since it was last cleared, from now on. */
async function drawnTexts(page: Page): Promise<() => Promise<readonly string[]>> {
  await page.evaluate(`
    globalThis.drawn = [];
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...place) {
      drawn.length = 0;
      clearRect.call(this, ...place);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      drawn.push(text);
      fillText.call(this, text, ...place);
    };
  `);
  return () => page.evaluate("drawn");
}

/** The axes of a day in which an hour has 16 requests. */
function expectDay(texts: readonly string[]): void {
  const labels = [...new Set(texts)];
  const amounts = labels.filter((text) => /^\d+$/.test(text));
  const times = labels.filter((text) => text.includes(":"));
  expect(amounts).toEqual(["0", "5", "10", "15"]);
  expect(times.length).toBeGreaterThan(6);
  expect(times.filter((text) => !text.endsWith(":00"))).toEqual([]);
  // All others are days, which begin at midnight.
  expect(labels.length - amounts.length - times.length).toBeLessThanOrEqual(2);
}

function suite(visitor: Visitor, open: () => Promise<Repository>): void {
  test("every page shows what is stored, and axe finds nothing serious", async () => {
    const repository = await open();
    await furnish(repository);
    const served = await visitor.serve(repository);
    const page = await visitor.visit(served, "");
    const dark = await visitor.visit(served, "", { dark: true });
    for (const [view, text] of [
      ["", "Close to exhaustion"],
      ["entities?id=org", EVIL],
      ["limits", "tph:1000/hour"],
      ["usage", "Download CSV"],
      ["audit", "maria"],
      ["namespaces", "active"],
      ["nonsense", "There is no page “nonsense”."],
    ] as const) {
      for (const each of view === "" || view === "limits" ? [page, dark] : [page]) {
        await each.goto(`${new URL(served.url).origin}/#/${view}`);
        await each.getByText(text).first().waitFor();
        expect({ view, found: await seriousFindings(each) }).toEqual({ view, found: [] });
      }
    }
    await page.getByRole("link", { name: "Go to the overview" }).click();
    await page.getByRole("heading", { name: "Close to exhaustion" }).waitFor();
    expect(await page.title()).toBe("zae-limiter");
  });

  test("usage is shown from one day to another, and a range without usage says so", async () => {
    const repository = await open();
    await furnish(repository);
    const page = await visitor.visit(await visitor.serve(repository), "usage");
    await page.getByRole("img", { name: /^rpm from / }).waitFor();
    const drawn = await drawnTexts(page);
    await page.getByRole("button", { name: "requests" }).click();
    await page.getByRole("img", { name: /^requests from / }).waitFor();
    // The chart draws once the page has laid it out.
    await vi.waitFor(async () => expectDay(await drawn()));
    await page.getByRole("button", { name: "Dates" }).click();
    await page.getByLabel("Windows").selectOption("hour");
    await page.getByText("Download CSV").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel("From", { exact: true }).fill("2000-01-01");
    await page.getByLabel("To", { exact: true }).fill("2000-01-02");
    await page.getByText("No usage was counted in this range.").waitFor();
  });

  test("slots are shown in flight, with whole names on a phone, and as peaks of each hour", async () => {
    const repository = await open();
    const { entities, limits, namespaceId } = repository;
    await entities.create({ id: "key-1" });
    await limits.setResource("render", ["parallel:5 concurrent"]);
    const limiter = new RateLimiter(repository);
    const place = { entityId: "key-1", resource: "render" };
    const lease = await limiter.acquire({ ...place, consume: { parallel: 4 } });
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
    const times = { window: "hourly", start: isoSeconds(hour), events: 1 } as const;
    const item = usageItem(namespaceId, { entity: "key-1", ...times, counters: {} });
    await repository[INTERNALS].records.store.put({ ...item, "parallel#pk": "5" });
    const served = await visitor.serve(repository);
    for (const look of [{}, { width: 390, dark: true }]) {
      const page = await visitor.visit(served, "entities?id=key-1", look);
      await page.getByText("4 in flight: 4 by ").first().waitFor();
      const name = page.locator(".balance-name").first();
      expect(await name.evaluate((each) => each.scrollWidth - each.clientWidth)).toBe(0);
      await page.getByRole("button", { name: "parallel at once" }).click();
      await page.getByRole("img", { name: /^parallel at once from / }).waitFor();
      expect(await seriousFindings(page)).toEqual([]);
    }
    await lease.commit();
  });

  test("an edit shows its effect before it is saved, and is audited by name", async () => {
    const repository = await open();
    await furnish(repository);
    const page = await visitor.visit(await visitor.serve(repository), "limits");
    await page.getByRole("button", { name: "Edit gpt-4" }).click();
    const input = page.getByLabel(/^Limits, as/);
    await input.fill("rpm:100  tph:");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await input.fill("rpm:100  tph:500/hour");
    await page.getByText("2 buckets change").waitFor();
    await page.getByText(/2 of them used more in an hour/).waitFor();
    await page.getByText("tph: 1,900 of 1,000").first().waitFor();
    expect((await repository.limits.getResource("gpt-4")).map(String)).toContain("tph:1000/hour");
    await input.press("Enter");
    await page.getByRole("button", { name: "Edit gpt-4" }).waitFor();
    expect((await repository.limits.getResource("gpt-4")).map(String)).toEqual([
      "rpm:100/min",
      "tph:500/hour",
    ]);
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByText("ann", { exact: true }).waitFor();
    await page.getByText("tph:500/hour").waitFor();
  });

  test("a bucket that is emptied appears on the open overview, and refills there", async () => {
    const repository = await open();
    const limiter = await furnish(repository);
    const served = await visitor.serve(repository, { limiter });
    const page = await visitor.visit(served, "");
    await page.getByText("No bucket is empty.").waitFor();
    const consume = { rpm: 7 };
    const target = { entityId: "key-2", resource: "gpt-4", consume };
    await limiter.acquire(target);
    await limiter.tryAcquire(target);
    await page.getByRole("meter", { name: "rpm of key-2" }).waitFor();
    await page.getByText(/again in \d/).waitFor();
  });
}

describeBrowser("the dashboard in a browser", (visitor) => {
  describe("on sqlite", () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-browser-"));
    const opened: Repository[] = [];
    afterEach(async () => {
      for (const repository of opened.splice(0)) await repository.close();
      rmSync(folder, { recursive: true, force: true });
    });
    suite(visitor, async () => {
      const repository = await Repository.open(`sqlite:${join(folder, "limits.db")}`);
      opened.push(repository);
      return repository;
    });
  });

  describeEngine("dynoxide", "with tables", ({ endpoint }) => {
    const opened: Repository[] = [];
    afterEach(async () => {
      for (const repository of opened.splice(0)) await repository.close();
    });
    suite(visitor, async () => {
      const table = `t-${crypto.randomUUID()}`;
      const repository = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
      opened.push(repository);
      return repository;
    });
  });
});
