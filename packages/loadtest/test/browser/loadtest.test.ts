/** The page of a load test in a real browser. */

import { servePage } from "@zae-limiter/dashboard/server/serve.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defineLoad } from "@zae-limiter/loadtest/define-load.ts";
import { LocalFleet } from "@zae-limiter/loadtest/local-fleet.ts";
import { UiRun } from "@zae-limiter/loadtest/ui/ui-run.ts";
import { uiHandler } from "@zae-limiter/loadtest/ui/ui-server.ts";
import { describeBrowser, seriousFindings } from "@zae-limiter/test-support/visitor.ts";
import { afterEach, expect, test } from "vitest";

const load = defineLoad({
  users: {
    Caller: {
      wait: 10,
      task: (session) =>
        session.acquire({
          entityId: session.userId,
          resource: "api",
          limits: ["n:1000000"],
          consume: { n: 1 },
        }),
    },
  },
});

describeBrowser("the page of a load test", (visitor) => {
  const closings: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closings.splice(0)) await close();
  });

  test("the page of a load test starts a run, changes its users, shows them live, and stops it", async () => {
    const limiter = await RateLimiter.open("memory:");
    const run = new UiRun({
      title: "simple.mjs",
      store: "memory",
      classes: ["Caller"],
      workers: 1,
      users: 3,
      makeFleet: (plan, results) =>
        new LocalFleet({ load, limiter, plan, onSlice: results.add.bind(results) }),
    });
    const place = { host: "127.0.0.1", port: 0 };
    const served = await servePage(place, (guard) => uiHandler(run, guard));
    closings.push(
      () => run.close(),
      () => served.close(),
      () => limiter.close(),
    );
    const page = await visitor.visit(served, "");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText(/^running for/).waitFor();
    await page.getByLabel("Users").fill("7");
    await page.getByRole("button", { name: "Change" }).click();
    // The number of users at work, as the worker reports it.
    await page.getByRole("definition").getByText("7", { exact: true }).waitFor();
    // Nothing is said of the prices of DynamoDB where the store is another one.
    expect(await page.getByText("WCU/acquire").count()).toBe(0);
    expect(await page.locator("canvas").count()).toBe(2);
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    const figures = page.getByRole("definition");
    for (const figure of await figures.all()) {
      const { x, width } = (await figure.boundingBox()) ?? { x: Number.NaN, width: 0 };
      expect(x + width).toBeLessThanOrEqual(390);
    }
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("nothing runs").waitFor();
    expect(run.state()).toMatchObject({ state: "idle", users: 7, failed: 0, problem: null });
    expect(run.state().granted).toBeGreaterThan(0);
  });

  test("the page of a load test is for the holder of the token, and refuses a senseless load", async () => {
    const limiter = await RateLimiter.open("memory:");
    const run = new UiRun({
      title: "simple.mjs",
      store: "memory",
      classes: ["Caller"],
      workers: 1,
      users: 3,
      makeFleet: () => {
        throw new Error("nothing is to be run");
      },
    });
    const served = await servePage({ host: "127.0.0.1", port: 0 }, (guard) =>
      uiHandler(run, guard),
    );
    closings.push(
      () => served.close(),
      () => limiter.close(),
    );
    const { origin, searchParams } = new URL(served.url);
    const post = (body: unknown, headers: Record<string, string>) =>
      fetch(`${origin}/api/start`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const change = { "x-zae-limiter-dashboard": "1" };
    const token = { authorization: `Bearer ${searchParams.get("token")}` };
    expect((await post({ users: 1 }, change)).status).toBe(401);
    expect((await post({ users: 1 }, token)).status).toBe(403);
    const refused = await post({ users: 0 }, { ...change, ...token });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: "ZAEL_VALIDATION" });
    expect(run.state().state).toBe("idle");
  });
});
