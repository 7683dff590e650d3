/** Limits over all resources, on every HTTP adapter. */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS } from "./served.ts";
import { byKey, SLOW, Stage, statusOf } from "./suite.ts";

describe.each(ADAPTERS)("totals on $name", (adapter) => {
  const stage = new Stage(adapter);

  test("a total refuses requests of every resource, and the answer names it", async () => {
    const limiter = await stage.limiter();
    const { limits } = limiter.repository;
    await limits.setSystem([`rpm:100${SLOW}`]);
    await limits.setEntity("team", [`rpm:3${SLOW}`], { resource: TOTAL });
    const { url } = await stage.serve({
      limiter,
      entityId: byKey,
      resource: (request) => request.header("x-route") ?? "http",
    });
    const ask = (route: string) => fetch(url, { headers: { "x-key": "team", "x-route": route } });
    for (const [at, route] of ["a", "b", "c"].entries()) {
      const passed = await ask(route);
      expect(passed.status).toBe(200);
      expect(passed.headers.get("ratelimit")).toContain(`"@all/rpm";r=${2 - at};`);
      await passed.arrayBuffer();
    }
    for (const route of ["a", "b", "c", "d"]) {
      const refused = await ask(route);
      expect(refused.status).toBe(429);
      const body = (await refused.json()) as Record<string, unknown>;
      expect(body["violated-policies"]).toEqual(["@all/rpm"]);
      expect(body["detail"]).toContain("over all resources");
    }
    const left = await limiter.available({ entityId: "team", resource: "a" });
    expect(left).toEqual({ rpm: 99 });
  });

  test("the total of a parent alone counts, and is shown to no client", async () => {
    const limiter = await stage.limiter();
    const { entities, limits } = limiter.repository;
    await entities.create({ id: "the-house" });
    await entities.create({ id: "key-1", parentId: "the-house", cascade: true });
    await limits.setEntity("the-house", [`rpm:1${SLOW}`], { resource: TOTAL });
    const { url } = await stage.serve({ limiter, entityId: byKey });
    const headers = { "x-key": "key-1" };
    const passed = await fetch(url, { headers });
    expect([passed.status, passed.headers.get("ratelimit")]).toEqual([200, null]);
    await passed.arrayBuffer();
    const refused = await fetch(url, { headers });
    expect(refused.status).toBe(429);
    expect(await refused.text()).not.toContain("the-house");
  });

  test("a limiter that counts no totals counts none here", async () => {
    const limiter = await stage.limiter({ totals: false });
    const { limits } = limiter.repository;
    await limits.setSystem([`rpm:2${SLOW}`]);
    await limits.setResource(TOTAL, [`rpm:1${SLOW}`]);
    const { url } = await stage.serve({ limiter, entityId: byKey });
    const ask = () => statusOf(url, { "x-key": "a" });
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  });

  test("a client cannot name an entity of operators", async () => {
    const limiter = await stage.limiter();
    await limiter.repository.limits.setSystem([`rpm:2${SLOW}`]);
    const { url } = await stage.serve({ limiter, entityId: byKey });
    await statusOf(url, { "x-key": "upstream:openai" });
    expect(await limiter.repository.buckets.list("upstream:openai")).toEqual([]);
    expect(await limiter.repository.buckets.list("enc:upstream:openai")).toHaveLength(1);
  });
});
