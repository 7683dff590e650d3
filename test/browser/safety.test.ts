/** What the dashboard refuses in a real browser, and what it does with many entities. */

import { expect, test } from "vitest";
import { Entity } from "../../src/domain/entity.ts";
import { RateLimiter } from "../../src/limiter/rate-limiter.ts";
import { encodeEntity } from "../../src/records/entity-item.ts";
import { INTERNALS } from "../../src/repository/internals.ts";
import { Repository } from "../../src/repository/repository.ts";
import { describeBrowser } from "./visitor.ts";

const MANY = 100_000;
const BATCH = 5000;
const BUCKETS = 2000;

describeBrowser("the dashboard's safety in a browser", (visitor) => {
  test("a name that was made to lead here gets 403, and an address without token 401", async () => {
    const served = await visitor.serve(await Repository.open("memory:"));
    const browser = await visitor.start(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    try {
      const page = await browser.newPage();
      const { port, search, origin } = new URL(served.url);
      const rebound = await page.goto(`http://evil.example:${port}/api/session`);
      expect(rebound?.status()).toBe(403);
      expect((await page.goto(`http://evil.example:${port}/${search}`))?.status()).toBe(403);
      expect((await page.goto(`${origin}/api/session`))?.status()).toBe(401);
      expect((await page.goto(served.url))?.status()).toBe(200);
      expect((await page.context().cookies())[0]).toMatchObject({
        httpOnly: true,
        sameSite: "Strict",
      });
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

  test("each of two namespaces shows its own limits, also on a phone and by keyboard", async () => {
    const repository = await Repository.open("memory:");
    await repository.namespaces.register("tenant-b");
    await repository.limits.setSystem(["rpm:1"]);
    await (await repository.namespace("tenant-b")).limits.setSystem(["rpm:2"]);
    const page = await visitor.visit(await visitor.serve(repository), "limits", { width: 390 });
    await page.getByText("rpm:1/min").waitFor();
    await page.getByLabel("Namespace").selectOption("tenant-b");
    await page.getByText("rpm:2/min").waitFor();
    expect(await page.getByText("rpm:1/min").count()).toBe(0);
    for (const name of ["Overview", "Entities", "Usage", "Audit", "Namespaces"]) {
      const link = page.getByRole("link", { name, exact: true });
      await link.focus();
      await link.press("Enter");
      await page.getByRole("heading", { level: 1, name }).waitFor({ state: "attached" });
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect({ name, wide }).toEqual({ name, wide: 0 });
    }
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
