/** `usage periods`, in process, on periods that other processes have closed. */

import { usage } from "@zae-limiter/cli/commands/records/usage.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { beforeAll, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const { run, json, name } = store.namespace();
let nowMs = Date.parse("2026-09-30T21:59:00Z");

beforeAll(async () => {
  const limiter = await RateLimiter.open(store.url, {
    namespace: name,
    clock: () => nowMs,
    // The command reads with the clock of this machine.
    usage: { retentionDays: 3650 },
  });
  const { limits } = limiter.repository;
  await limits.setResource("gpt-4", ["usd:$50/month Europe/Berlin", "tok:100/session:5hour"]);
  const spend = async (usd: number, tok: number) => {
    const call = { entityId: "team-a", resource: "gpt-4", consume: { usd, tok } };
    await (await limiter.acquire(call)).commit();
  };
  await spend(12_345_678, 30);
  nowMs = Date.parse("2026-10-01T08:00:00Z");
  await spend(1_000_000, 40);
  nowMs = Date.parse("2026-11-01T08:00:00Z");
  await spend(1, 1);
  await limiter.close();
});

const rows = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().split(/ {2,}/));

test("usage periods shows each period in the time of its zone, with money in dollars", async () => {
  const { code, out, err } = await run("usage", "periods", "-e", "team-a", "--end", "2026-11-01");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(rows(out)).toEqual([
    ["ENDED", "BEGAN", "RESOURCE", "ENTITY", "LIMIT", "USED", "GRANTED", "CARRIED", "LATE"],
    [
      "2026-11-01 00:00 Europe/Berlin",
      "2026-10-01 00:00 Europe/Berlin",
      "gpt-4",
      "team-a",
      "usd",
    ].concat(["$1.00", "$50.00", "$0.00", "$0.00"]),
    ["2026-10-01 13:00 UTC", "2026-10-01 08:00 UTC", "gpt-4", "team-a", "tok"].concat([
      "40",
      "100",
      "0",
      "0",
    ]),
    ["2026-10-01 02:59 UTC", "2026-09-30 21:59 UTC", "gpt-4", "team-a", "tok"].concat([
      "30",
      "100",
      "0",
      "0",
    ]),
    [
      "2026-10-01 00:00 Europe/Berlin",
      "2026-09-01 00:00 Europe/Berlin",
      "gpt-4",
      "team-a",
      "usd",
    ].concat(["$12.345678", "$50.00", "$0.00", "$0.00"]),
  ]);
});

test("usage periods has its JSON, its filters and its pages", async () => {
  const query = ["usage", "periods", "-r", "gpt-4", "--limit-name", "usd", "--end", "2026-11-01"];
  const page = await json<{ periods: object[]; cursor: string }>(...query, "-l", "1");
  expectShape(shapeOf(usage, "periods"), page);
  expect(page.periods).toEqual([
    {
      entity_id: "team-a",
      resource: "gpt-4",
      limit_name: "usd",
      kind: "quota",
      start: "2026-10-01T00:00:00+02:00",
      end: "2026-11-01T00:00:00+01:00",
      start_ms: Date.parse("2026-09-30T22:00Z"),
      end_ms: Date.parse("2026-10-31T23:00Z"),
      time_zone: "Europe/Berlin",
      allowance: 50_000_000,
      carried: 0,
      granted: 50_000_000,
      used: 1_000_000,
      late: 0,
    },
  ]);
  const rest = await json<{ periods: object[] }>(...query, "--cursor", page.cursor);
  expect(rest).toMatchObject({ periods: [{ used: 12_345_678 }], cursor: null });
});

test("usage periods says that nothing was closed, and asks for an entity or a resource", async () => {
  expect(await run("usage", "periods", "-e", "team-b")).toMatchObject({
    code: 0,
    out: "No period was closed\n",
  });
  expect(await run("usage", "periods")).toMatchObject({ code: 2 });
});
