/** Tests what the dashboard refuses in a real browser, and what it does with many entities. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { encodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describeBrowser } from "@zae-limiter/test-support/visitor.ts";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";

const MANY = 100_000;
const BATCH = 5000;
const BUCKETS = 2000;

/** Higher than a line of text, and lower than two. */
const ONE_LINE = 30;

/** The id of a key of the gateway, which has no place to break. */
const KEY = `key-${"0123456789abcdef".repeat(5)}`.slice(0, 76);

async function rightEdge(element: Locator): Promise<number> {
  const { x, width } = (await element.boundingBox()) ?? { x: Number.NaN, width: 0 };
  return x + width;
}

async function expectNarrow(page: Page, name: string): Promise<void> {
  const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  expect({ name, wide }).toEqual({ name, wide: 0 });
}

describeBrowser("the dashboard's safety in a browser", (visitor) => {
  test("another name gets 403, no token 401 and a page, and a new store names the first step", async () => {
    const served = await visitor.serve(await Repository.open("memory:"));
    const browser = await visitor.start(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    try {
      const page = await browser.newPage();
      const { port, search, origin } = new URL(served.url);
      const rebound = await page.goto(`http://evil.example:${port}/api/session`);
      expect(rebound?.status()).toBe(403);
      expect((await page.goto(`http://evil.example:${port}/${search}`))?.status()).toBe(403);
      expect((await page.goto(`${origin}/api/session`))?.status()).toBe(401);
      expect((await page.goto(origin))?.status()).toBe(401);
      await page.getByText("Open the address that the command printed").waitFor();
      expect((await page.goto(served.url))?.status()).toBe(200);
      expect((await page.context().cookies())[0]).toMatchObject({
        httpOnly: true,
        sameSite: "Strict",
      });
      // The store is new.
      await page.getByRole("link", { name: "Set a system limit" }).click();
      await page.getByText("Begin here:").waitFor();
      await page.getByLabel(/^Limits, as/).fill("rpm:60");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("rpm:60/min").waitFor();
      await page.getByText("Begin here:").waitFor({ state: "detached" });
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByText("Limits are stored.").waitFor();
    } finally {
      await browser.close();
    }
  });

  test("a read-only page offers no change, and its server refuses one", async () => {
    const repository = await Repository.open("memory:");
    await repository.limits.setSystem(["rpm:1"]);
    const served = await visitor.serve(repository, { readOnly: true });
    const page = await visitor.visit(served, "limits");
    await page.getByText("rpm:1/min").waitFor();
    expect(await page.getByRole("button", { name: /Edit|Add|Remove/ }).count()).toBe(0);
    const status = await page.evaluate(async () => {
      const headers = { "content-type": "application/json", "x-zae-limiter-dashboard": "1" };
      const body = JSON.stringify({ level: "system", limits: ["rpm:2"], expected: ["rpm:1"] });
      return (await fetch("api/limits", { method: "POST", headers, body })).status;
    });
    expect(status).toBe(403);
    expect((await repository.limits.getSystem()).limits.map(String)).toEqual(["rpm:1/min"]);
  });

  test("two namespaces show their own limits, also on a phone, with long ids, by keyboard", async () => {
    const repository = await Repository.open("memory:");
    await repository.namespaces.register("tenant-b");
    await repository.limits.setSystem(["rpm:1"]);
    const tenant = await repository.namespace("tenant-b");
    await tenant.limits.setSystem(["rpm:2"]);
    await tenant.limits.setEntity(KEY, ["rpm:2"], { resource: "chat", principal: KEY });
    await tenant.entities.create({ id: KEY });
    const consume = { rpm: 2 };
    const limiter = new RateLimiter(tenant);
    for (const resource of ["chat", KEY])
      await limiter.acquire({ entityId: KEY, resource, consume });
    const page = await visitor.visit(await visitor.serve(repository), "limits", { width: 390 });
    await page.getByText("rpm:1/min").waitFor();
    await page.getByLabel("Namespace").selectOption("tenant-b");
    await page.getByText("rpm:2/min").first().waitFor();
    expect(await page.getByText("rpm:1/min").count()).toBe(0);
    await page.getByRole("button", { name: "Edit system" }).click();
    await page.getByLabel(/^Limits, as/).fill("rpm:1234567");
    // The first is the difference; the others are what the buckets get.
    const wanted = page.getByText("rpm:1234567/min");
    await wanted.nth(1).waitFor();
    expect(await rightEdge(wanted.nth(1))).toBeLessThan(390);
    await expectNarrow(page, "limits");
    const key = page.getByRole("link", { name: KEY }).first();
    for (const name of ["Overview", "Entities", "Usage", "Audit", "Namespaces"]) {
      const link = page.getByRole("link", { name, exact: true });
      expect(await rightEdge(link)).toBeLessThanOrEqual(390);
      await link.focus();
      await link.press("Enter");
      await page.getByRole("heading", { level: 1, name }).waitFor({ state: "attached" });
      if (/Overview|Entities|Audit/.test(name)) await key.waitFor();
      await expectNarrow(page, name);
      if (name !== "Entities") continue;
      await key.click();
      await page
        .getByRole("meter", { name: `rpm of ${KEY}` })
        .first()
        .waitFor();
      await expectNarrow(page, "an entity");
    }
  });

  test.each([390, 1280])("orphans and money fit on pages that are %d wide", async (width) => {
    const repository = await Repository.open("memory:");
    await repository.limits.setSystem(["usd:$50000/month"]);
    for (const [id, parentId] of [
      ["orphan-1", "team"],
      ["orphan-2", KEY],
    ] as const) {
      await repository.entities.create({ id, parentId, cascade: true, allowMissingParent: true });
    }
    const consume = { usd: 12_345_670_000 };
    const limiter = new RateLimiter(repository);
    await limiter.acquire({ entityId: "orphan-1", resource: "chat", consume });
    const page = await visitor.visit(await visitor.serve(repository), "entities", { width });
    for (const [id, parentId] of [
      ["orphan-1", "team"],
      ["orphan-2", KEY],
    ] as const) {
      const link = page.getByRole("link", { name: id }).getByText(id, { exact: true });
      await link.waitFor();
      expect((await link.boundingBox())?.height).toBeLessThan(ONE_LINE);
      const badge = page.getByText(`parent ${parentId} is missing`);
      const { x = 0 } = (await badge.boundingBox()) ?? {};
      expect(x).toBeGreaterThan(0);
      expect(await rightEdge(badge)).toBeLessThan(390);
    }
    await expectNarrow(page, "entities");
    await page.getByRole("link", { name: "orphan-1" }).click();
    await page.getByRole("meter", { name: "usd of orphan-1" }).waitFor();
    await expectNarrow(page, "an entity");
  });

  test.each([390, 1280])("quotas fit, and say how they come back, on %d pixels", async (width) => {
    let nowMs = Date.parse("2026-10-20T12:00Z");
    const repository = await Repository.open("memory:", { clock: () => nowMs });
    const fiscal = "fiscal_year_requests:10000/year@04-01 America/New_York@06:00 alerts 50,80,100";
    const roll = Limit.quota("roll", 10, { every: "month", carry: "rest", carryMax: 5 });
    await repository.limits.setResource("api", [fiscal, "rpd:1000/day", roll]);
    const limiter = new RateLimiter(repository);
    const call = { entityId: "key-1", resource: "api", consume: { roll: 1 } };
    await limiter.acquire(call);
    nowMs = Date.parse("2026-11-03T12:00Z");
    await limiter.acquire(call);
    const page = await visitor.visit(await visitor.serve(repository), "limits", { width });
    for (const words of [
      "refills evenly",
      "resets on 04-01 at 06:00",
      "resets on day 1 of the month at 00:00, carries what is left up to 5",
    ]) {
      await page.getByText(words, { exact: true }).waitFor();
    }
    await expectNarrow(page, "limits");
    await page.goto(`${page.url().split("#")[0]}#/entities?id=key-1`);
    const meter = page.getByRole("meter", { name: "roll of key-1" });
    await meter.waitFor();
    // It has carried 5 of the 9 that were left.
    expect(await meter.getAttribute("aria-valuetext")).toBe("14 of 10");
    await page
      .getByRole("rowheader", { name: "2026-10-01 00:00 to 2026-11-01 00:00 UTC" })
      .waitFor();
    const cell = page.getByRole("cell", { name: "key-1", exact: true }).first();
    expect((await cell.boundingBox())?.height).toBeLessThan(2 * ONE_LINE);
    await expectNarrow(page, "an entity");
    expect(await rightEdge(page.getByText("roll", { exact: true }).first())).toBeLessThan(width);
  });

  test("100,000 entities are shown page by page, and found by the beginning of their id", async () => {
    const repository = await Repository.open("memory:");
    await repository.limits.setSystem(["rpm:10"]);
    const limiter = new RateLimiter(repository);
    const { store, namespaceId } = repository[INTERNALS].records;
    const ids = Array.from({ length: MANY }, (_, n) => `key-${String(n).padStart(6, "0")}`);
    for (let at = 0; at < MANY; at += BATCH) {
      const some = ids.slice(at, at + BATCH);
      const puts = some.map((id) => encodeEntity(namespaceId, new Entity({ id })));
      await store.writeMany({ puts });
    }
    for (const entityId of ids.slice(-BUCKETS)) {
      await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm: 1 } });
    }
    const page = await visitor.visit(await visitor.serve(repository), "");
    await page.getByText("2,000", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "Entities", exact: true }).click();
    await page.getByText("key-000049").waitFor();
    expect(await page.getByRole("link", { name: /^key-/ }).count()).toBe(50);
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("key-000099").waitFor();
    await page.getByRole("searchbox").fill("key-09999");
    await page.getByText("key-099999").click();
    await page.getByRole("meter", { name: "rpm of key-099999" }).waitFor();
  });
});
