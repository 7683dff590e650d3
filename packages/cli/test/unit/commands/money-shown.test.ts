/** Limits in money on the command line: dollars for people, micro-dollars in JSON. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { beforeAll, expect, test } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();
const { run, json, under, name } = store.namespace();
const target = { entityId: "key-1", resource: "gpt-4" };

beforeAll(async () => {
  const limiter = await RateLimiter.open(store.url, { namespace: name });
  await limiter.repository.limits.setEntity("key-1", ["tph:1000000/hour", "usd:$500/hour"]);
  const lease = await limiter.acquire({ ...target, consume: { tph: 1200, usd: 12_345_678 } });
  await lease.commit();
  await limiter.close();
});

test("peek shows dollars, and micro-dollars in JSON", async () => {
  const { out } = await under({ columns: 120 }, "peek", "key-1", "gpt-4");
  expect(out).toMatch(/usd .* \$4\d\d\.\d+ of \$500\.00 .*\+\$500\.00\/hour/);
  expect(out).toMatch(/tph .* 99\d,\d{3} of 1,000,000 /);
  const { limits } = await json<{ limits: { limit_name: string; capacity: number }[] }>(
    "peek",
    "key-1",
    "gpt-4",
  );
  expect(limits.find(({ limit_name }) => limit_name === "usd")?.capacity).toBe(500_000_000);
});

test("usage has dollars in tables, sums and axes of charts, and micro-dollars in JSON", async () => {
  const spent = "$12.345678";
  expect((await run("usage", "list", "-e", "key-1")).out).toContain(`tph=1,200, usd=${spent}`);
  expect((await run("usage", "top")).out).toContain(`tph=1,200, usd=${spent}`);
  const summary = await run("usage", "summary", "-e", "key-1", "-w", "hourly");
  expect(summary.out).toMatch(/usd +\$12\.345678 +\$12\.345678/);
  expect(summary.out).toMatch(/tph +1,200 +1,200\.00/);
  const { out } = await run("usage", "list", "-e", "key-1", "--plot");
  expect(out).toMatch(/^\$12\.345678 ┤/m);
  expect(out).toMatch(/^ +\$6\.172839 ┤/m);
  expect(await json("usage", "summary", "-e", "key-1", "-w", "hourly")).toMatchObject({
    total: { usd: 12_345_678 },
  });
});

test("limits, refusals and top-ups name dollars", async () => {
  expect((await run("entity", "get-limits", "key-1")).out).toContain("usd: $500.00/hour");
  const refused = await run("acquire", "key-1", "gpt-4", "-c", "usd=499000000");
  expect(refused.out + refused.err).toMatch(/key-1 needs \$499\.00 usd, has \$4\d\d\.\d+/);
  const granted = await run("acquire", "key-1", "gpt-4", "-c", "usd=1000");
  expect(granted.out).toMatch(/Granted: \$0\.001 usd\n.*\$4\d\d\.\d+ of \$500\.00 left/);
  const added = await run("entity", "top-up", "key-1", "-r", "gpt-4", "-a", "usd:1500000");
  expect(added.out).toContain("usd: +$1.50");
  const half = await run("entity", "top-up", "key-1", "-r", "gpt-4", "-a", "usd:$0.50");
  expect(half.out).toContain("usd: +$0.50");
});

test("amounts may be dollars, and what a shell leaves of them is explained", async () => {
  const granted = await run("acquire", "key-1", "gpt-4", "-c", "usd=$0.000001");
  expect(granted.out).toContain("Granted: $0.000001 usd");
  for (const text of ["usd=", "usd=5x", "usd=.50"]) {
    const { code, err } = await run("acquire", "key-1", "gpt-4", "-c", text);
    expect(code).toBe(2);
    expect(err).toContain("expected dollars in single quotes, such as 'usd=$5'; in double quotes");
  }
  const million = await run("acquire", "key-1", "gpt-4", "-c", "usd=$1000001");
  expect(million.err).toContain("expected at most $1,000,000");
  expect((await run("acquire", "key-1", "gpt-4", "-c", "tph=$5")).err).toContain(
    "expected a limit and a whole number, e.g. rpm=1",
  );
});
