/** The commands of both libraries on one table, usage, statuses and times to live. */

import { runAggregator } from "@zae-limiter/aws/aggregator/run.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { expect, it } from "vitest";
import { pythonCommand } from "./library.ts";
import { type Both, SharedTable } from "./shared-table.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };

describeEngines("commands and usage next to Python 0.17.0", (engine) => {
  const table = new SharedTable(engine, "0.17.0");

  function placeOf({ repo }: Both): string[] {
    const { table: name, endpoint } = table.place;
    const at = ["-n", name, "--endpoint-url", endpoint, "--region", "us-east-1"];
    return [...at, "-N", repo.namespaceName];
  }

  function theirs(both: Both, ...args: string[]): string {
    return pythonCommand("0.17.0", [...args, ...placeOf(both)]);
  }

  const ours = (both: Both, ...args: string[]) => table.command(both, ...args);

  it("what one command sets, the other shows", async () => {
    const both = await table.open();
    theirs(both, "resource", "set-defaults", R, "-l", "rpm:100", "-l", "tpm:5000/min:9000");
    expect(await ours(both, "resource", "get-defaults", R)).toBe(
      `Limits of ${R}:\n  rpm: 100/min\n  tpm: 5,000/min (burst: 9,000)\n`,
    );
    await ours(both, "entity", "set-limits", E, "-r", R, "-l", "rpm:7", "-l", "tpm:9");
    await ours(both, "entity", "disable", E, "-r", R);
    const shown = theirs(both, "entity", "get-limits", E, "--resource", R);
    expect(shown).toMatch(/rpm/);
    expect(shown.toLowerCase()).toContain("disabled");
    theirs(both, "entity", "enable", E, "--resource", R);
    expect(await ours(both, "entity", "get-limits", E, "-r", R)).toContain("switched on");
    theirs(both, "resource", "disable", R);
    expect(await ours(both, "peek", "other", R)).toContain("switched off");
  });

  it("statuses of both libraries say the same, and ours shortens no time to live", async () => {
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    await python.acquire(E, R, { rpd: 30 });
    const [before] = await table.shards(both, E, R);
    await limiter.acquire({ ...CALL, consume: { rpd: 20 } });
    const [after] = await table.shards(both, E, R);
    expect(Number(after?.ttl ?? Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(
      Number(before?.ttl ?? 0),
    );
    const [status] = await limiter.status(CALL);
    expect(status).toMatchObject({ available: 50 });
    const fresh = await table.anotherPython(both);
    expect(await fresh.grants(E, R, { rpd: 51 })).toBe(false);
    expect(await fresh.grants(E, R, { rpd: 50 })).toBe(true);
  });

  it("our aggregator counts what both libraries consume, and Python reads it", async () => {
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    const { table: name, endpoint } = table.place;
    const stop = new AbortController();
    const running = runAggregator(`dynamodb://${name}?endpoint=${endpoint}&region=us-east-1`, {
      signal: stop.signal,
      batchMs: 50,
      write: () => {},
    });
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    await python.acquire(E, R, { rpd: 2 });
    await limiter.acquire({ ...CALL, consume: { rpd: 3 } });
    await python.acquire(E, R, { rpd: 4 });
    const counted = async () => {
      const { snapshots } = await repo.usage.snapshots({ entityId: E, window: "hourly" });
      return snapshots.reduce((sum, { counters }) => sum + (counters["rpd"] ?? 0), 0);
    };
    await expect.poll(counted, { timeout: 30_000, interval: 100 }).toBe(10);
    stop.abort();
    await running;
    const summary = await repo.usage.summary({ entityId: E, window: "hourly" });
    expect(summary.total).toMatchObject({ rpd: 10 });
    const found = await python.repo<[{ counters: Record<string, number> }[], unknown]>(
      "get_usage_snapshots",
      [],
      { entity_id: E, resource: R },
    );
    expect(found[0].length).toBeGreaterThan(0);
  });
});
