/** `usage report`, in process, on calls that cascade and count for totals. */

import { usage } from "@zae-limiter/cli/commands/records/usage.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { limitFetch } from "@zae-limiter/limiter/llm/index.ts";
import { beforeAll, describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const { run, json, name } = store.namespace();
const elsewhere = store.namespace();
/** The first hour of December in Berlin, and still November in UTC. */
const nowMs = Date.parse("2026-11-30T23:10:00Z");

beforeAll(async () => {
  const limiter = await RateLimiter.open(store.url, {
    namespace: name,
    clock: () => nowMs,
    totals: true,
    // The command reads with the clock of this machine.
    usage: { retentionDays: 3650 },
  });
  const { entities, limits } = limiter.repository;
  await entities.create({ id: "team-a" });
  for (const id of ["ann", "bob"]) {
    await entities.create({ id, parentId: "team-a", cascade: true });
  }
  await limits.setSystem(["tph:1000000/hour", "usd:$500/hour"]);
  await limits.setEntity("team-a", ["usd:$900/hour"], { resource: TOTAL });
  const spend = async (
    ids: readonly [string, string],
    resource: string,
    tph: number,
    usd: number,
  ) => {
    const [entityId, tag] = ids;
    const part = { entityId: tag, resource, consume: { usd }, limits: ["usd:$900/hour soft"] };
    const lease = await limiter.acquire({
      entityId,
      resource,
      consume: { tph, usd },
      also: [part],
    });
    await lease.commit();
  };
  await spend(["ann", "tag:research"], "gpt-4", 1200, 12_345_678);
  await spend(["ann", "tag:other"], "claude", 100, 1000);
  await spend(["bob", "tag:research"], "gpt-4", 30, 2_000_000);
  await limiter.close();
});

const rows = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().split(/ {2,}/));

const DECEMBER = ["--month", "2026-12", "--zone", "Europe/Berlin"];

describe("usage report", () => {
  test("a call that cascades and counts for totals is one event of the total", async () => {
    const { run: runHere, name: namespace } = store.namespace();
    const usageKept = { retentionDays: 3650 };
    const options = { namespace, clock: () => nowMs, totals: true, usage: usageKept };
    const limiter = await RateLimiter.open(store.url, options);
    const { entities, limits } = limiter.repository;
    await entities.create({ id: "team-a" });
    await entities.create({ id: "ann", parentId: "team-a", cascade: true });
    await limits.setEntity("team-a", ["usd:$900/hour"], { resource: TOTAL });
    await limits.setEntity("ann", ["usd:$500/hour", "rph:60/hour"], { resource: TOTAL });
    for (const resource of ["gpt-4", "claude"]) {
      await limiter.acquire({ entityId: "ann", resource, consume: { usd: 1_000_000, rph: 1 } });
    }
    await limiter.close();
    for (const by of ["entity,model", "model", "entity"]) {
      const { out } = await runHere("usage", "report", "--by", by, ...DECEMBER);
      expect(rows(out).find(([first]) => first === "TOTAL")).toEqual(["TOTAL", "2", "2", "$2.00"]);
    }
  });

  test("rows are by entity and model with dollars next to tokens, and the total counts once", async () => {
    const { code, out, err } = await run("usage", "report", ...DECEMBER);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(rows(out)).toEqual([
      ["2026-12-01 00:00 Europe/Berlin to 2027-01-01 00:00 Europe/Berlin"],
      [""],
      ["ENTITY", "RESOURCE", "EVENTS", "tph", "usd"],
      ["team-a", "gpt-4", "2", "1,230", "$14.345678"],
      ["ann *", "gpt-4", "1", "1,200", "$12.345678"],
      ["bob *", "gpt-4", "1", "30", "$2.00"],
      ["ann *", "claude", "1", "100", "$0.001"],
      ["team-a", "claude", "1", "100", "$0.001"],
      ["TOTAL", "3", "1,330", "$14.346678"],
      [""],
      ["* in the rows of ancestors too; the total counts it once"],
    ]);
  });

  test("the month is that of the zone", async () => {
    const november = ["usage", "report", "--month", "2026-11"];
    const empty = await run(...november, "--zone", "Europe/Berlin");
    expect(empty).toMatchObject({ code: 0, err: "" });
    expect(empty.out).toBe(
      "No usage was counted from 2026-11-01 00:00 Europe/Berlin to 2026-12-01 00:00 Europe/Berlin\n",
    );
    expect((await run(...november)).out).toContain("TOTAL");
  });

  test("JSON has micro-dollars, and CSV dollars", async () => {
    const found = await json("usage", "report", "--by", "model", ...DECEMBER);
    expectShape(shapeOf(usage, "report"), found);
    expect(found).toEqual({
      zone: "Europe/Berlin",
      start: "2026-12-01T00:00:00+01:00",
      end: "2027-01-01T00:00:00+01:00",
      rows: [
        {
          resource: "gpt-4",
          total_events: 2,
          counters: { tph: 1230, usd: 14_345_678 },
          cascaded: false,
        },
        { resource: "claude", total_events: 1, counters: { tph: 100, usd: 1000 }, cascaded: false },
      ],
      total: { total_events: 3, counters: { tph: 1330, usd: 14_346_678 } },
    });
    const { out } = await run("usage", "report", "--by", "entity", "--csv", ...DECEMBER);
    expect(out.trimEnd().split("\n")).toEqual([
      "entity_id,total_events,tph,usd ($),cascaded",
      "team-a,3,1330,14.346678,no",
      "ann,2,1300,12.346678,yes",
      "bob,1,30,2,yes",
    ]);
  });

  test("one entity, one resource and the first rows", async () => {
    const ann = await run("usage", "report", "--by", "entity,day", "-e", "ann", ...DECEMBER);
    expect(rows(ann.out)[3]).toEqual(["ann", "2026-12-01", "2", "1,300", "$12.346678"]);
    const total = await run("usage", "report", "-r", TOTAL, ...DECEMBER);
    expect(rows(total.out)[3]).toEqual(["team-a", TOTAL, "3", "$14.346678"]);
    const first = await run("usage", "report", "--limit", "1", ...DECEMBER);
    expect(first.err).toBe("There are 4 more rows; --limit shows more\n");
    expect(rows(first.out)).toHaveLength(5);
    expect(first.out).toContain("TOTAL");
  });

  test("tags have a report of their own, and are in no other one", async () => {
    const tagged = await run("usage", "report", "--by", "tag,model", ...DECEMBER);
    expect(rows(tagged.out).slice(2)).toEqual([
      ["TAG", "RESOURCE", "EVENTS", "usd"],
      ["research", "gpt-4", "2", "$14.345678"],
      ["other", "claude", "1", "$0.001"],
      ["TOTAL", "3", "$14.346678"],
    ]);
    const found = await json("usage", "report", "--by", "tag", ...DECEMBER);
    expectShape(shapeOf(usage, "report"), found);
    const one = await run("usage", "report", "-e", "tag:other", ...DECEMBER);
    expect(rows(one.out)[3]).toEqual(["tag:other", "claude", "1", "$0.001"]);
  });

  test("a zone with half hours says where its hours count", async () => {
    const { err } = await run("usage", "report", "--month", "2026-12", "--zone", "Asia/Kolkata");
    expect(err).toContain("Asia/Kolkata differs by 30 minutes: an hour counts where it begins");
  });

  test.each([
    [["--zone", "Berlin"], 'there is no time zone "Berlin" here; did you mean Europe/Berlin?'],
    [["--month", "2026-13"], 'expected --month like 2026-11, got "2026-13"'],
    [["--by", "person"], 'expected entity or tag, model and day, joined by commas, got "person"'],
    [["--by", "entity,tag"], "expected entity or tag"],
    [["--by", "tag", "-e", "ann"], "--by tag is about all tags"],
    [["--by", "model,resource"], 'expected each part once, got "model,resource"'],
    [["--csv", "--json"], "--csv and --json exclude each other"],
  ])("%j is a mistake on the command line", async (options, message) => {
    const { code, out, err } = await run("usage", "report", ...options);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
  });

  test("dollars are reported by model where there is nothing but a budget over all models", async () => {
    const limiter = await RateLimiter.open(store.url, { namespace: "new-user" });
    await limiter.repository.limits.setResource(TOTAL, ["usd:$5/day UTC"]);
    const upstream = async () =>
      Response.json({ usage: { prompt_tokens: 1000, completion_tokens: 1000 } });
    const fetch = limitFetch(limiter, { entityId: "team-a", fetch: upstream });
    for (const model of ["gpt-4o", "gpt-4o-mini", "gpt-4o"]) {
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] });
      const answer = await fetch("https://api.openai.com/v1/chat/completions", {
        method: "POST",
        body,
      });
      await answer.text();
    }
    await limiter.close();
    const args = ["usage", "report", "--by", "model", "--url", store.url];
    const { out } = await run(...args, "--namespace", "new-user");
    expect(rows(out).slice(2)).toEqual([
      ["RESOURCE", "EVENTS", "usd"],
      ["gpt-4o", "2", "$0.025"],
      ["gpt-4o-mini", "1", "$0.00075"],
      ["TOTAL", "3", "$0.02575"],
    ]);
  });

  test("a namespace without usage has an empty report", async () => {
    const limiter = await RateLimiter.open(store.url, { namespace: elsewhere.name });
    await limiter.close();
    expect((await elsewhere.run("usage", "report")).out).toContain("No usage was counted from ");
    expect(await elsewhere.json("usage", "report")).toMatchObject({
      rows: [],
      total: { total_events: 0, counters: {} },
    });
  });
});
