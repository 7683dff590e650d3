/** Quotas and sessions, on every HTTP adapter. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describe, expect, test } from "vitest";
import { ADAPTERS } from "./served.ts";
import { byKey, Stage } from "./suite.ts";

const TEXT = "month:2/month Europe/Berlin";

describe.each(ADAPTERS)("quotas on $name", (adapter) => {
  const stage = new Stage(adapter);

  test("an answer says how much of the period is left, and a refusal when it resets", async () => {
    const limiter = await stage.limiter();
    await limiter.repository.limits.setSystem([TEXT, "ses:9/session:5hour"]);
    const { url } = await stage.serve({ limiter, entityId: byKey, consume: { month: 1, ses: 1 } });
    const ask = () => fetch(url, { headers: { "x-key": "team" } });
    const period = Limit.parse(TEXT).periodAt(Date.now());
    const seconds = ((period?.endMs ?? 0) - (period?.startMs ?? 0)) / 1000;
    for (const left of [1, 0]) {
      const passed = await ask();
      expect(passed.status).toBe(200);
      expect(passed.headers.get("ratelimit-policy")).toBe(
        `"month";q=2;w=${seconds}, "ses";q=9;w=18000`,
      );
      expect(passed.headers.get("ratelimit")).toContain(`"month";r=${left};t=`);
      await passed.arrayBuffer();
    }
    const refused = await ask();
    expect(refused.status).toBe(429);
    const wait = Number(refused.headers.get("retry-after"));
    expect(Math.abs(Date.now() + wait * 1000 - (period?.endMs ?? 0))).toBeLessThan(5000);
    const { detail, limits } = (await refused.json()) as { detail: string; limits: object[] };
    expect(detail).toMatch(/resets [0-9-]+ 00:00 Europe\/Berlin/);
    expect(limits).toMatchObject([
      { limit_name: "month", kind: "quota", resets_at_ms: period?.endMs },
      { limit_name: "ses", kind: "session" },
    ]);
  });

  test("a limit with windows answers with the numbers of the one that is open", async () => {
    const limiter = await stage.limiter();
    const always = [{ when: "0-24", timeZone: "Asia/Tokyo", scale: 0.5 }];
    const rpd = Limit.parse("rpd:20/day").withSchedule(always);
    await limiter.repository.limits.setSystem([rpd]);
    const { url } = await stage.serve({ limiter, entityId: byKey, consume: { rpd: 6 } });
    const ask = () => fetch(url, { headers: { "x-key": "team" } });
    const passed = await ask();
    expect(passed.headers.get("ratelimit-policy")).toBe('"rpd";q=10;w=86400');
    expect(passed.headers.get("ratelimit")).toContain('"rpd";r=4;t=');
    await passed.arrayBuffer();
    const refused = await ask();
    expect(refused.status).toBe(429);
    const { limits } = (await refused.json()) as { limits: object[] };
    expect(limits).toMatchObject([{ limit_name: "rpd", kind: "rate", capacity: 10 }]);
  });
});
