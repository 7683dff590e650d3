/** `usage`, in process: lists, sums and charts. */

import { usage } from "@zae-limiter/cli/commands/records/usage.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { type UsageSeed, usageItem } from "@zae-limiter/test-support/usage-item.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const { run, json, under, name } = store.namespace();
let repository: Repository;

const hour = (at: number) => `2026-11-15T${String(at).padStart(2, "0")}:00:00Z`;
const SEEDS: readonly UsageSeed[] = [
  {
    entity: "key-1",
    window: "hourly",
    start: hour(10),
    events: 3,
    counters: { rpm: 3, tpm: 1200 },
  },
  { entity: "key-1", window: "hourly", start: hour(13), events: 1, counters: { rpm: 1, tpm: 300 } },
  { entity: "key-2", window: "hourly", start: hour(13), events: 1, counters: { rpm: 1, tpm: 50 } },
  { entity: "key-1", window: "daily", start: hour(0), events: 4, counters: { rpm: 4, tpm: 1500 } },
];

beforeAll(async () => {
  repository = await Repository.open(store.url, { namespace: name });
  const { store: items } = await openSqlite({ path: store.path });
  await items.writeMany({ puts: SEEDS.map((seed) => usageItem(repository.namespaceId, seed)) });
  await items.close();
});
afterAll(() => repository.close());

const rows = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));

describe("usage list", () => {
  test("usage list filters by entity, by resource, by window and time", async () => {
    const listed = await run("usage", "list", "-e", "key-1", "-w", "hourly");
    expect(listed).toMatchObject({ code: 0, err: "" });
    expect(rows(listed.out)).toEqual([
      ["WINDOW", "TYPE", "RESOURCE", "ENTITY", "EVENTS", "CONSUMED"],
      [hour(13), "hourly", "gpt-4", "key-1", "1", "rpm=1, tpm=300"],
      [hour(10), "hourly", "gpt-4", "key-1", "3", "rpm=3, tpm=1,200"],
    ]);
    const late = await run("usage", "list", "-r", "gpt-4", "--start", hour(11), "--end", hour(14));
    expect(rows(late.out).map((row) => row[3])).toEqual(["ENTITY", "key-2", "key-1"]);
    expect((await run("usage", "list", "-e", "key-3")).out).toBe("No usage was counted\n");
  });

  test("usage is listed page by page", async () => {
    const query = ["usage", "list", "-e", "key-1"];
    const page = await json<{ cursor: string; snapshots: object[] }>(...query, "-l", "1");
    expectShape(shapeOf(usage, "list"), page);
    expect(page.snapshots).toHaveLength(1);
    const text = await run(...query, "-l", "1");
    expect(text.err).toBe(`There is more; continue with --cursor ${page.cursor}\n`);
    const rest = await json<{ snapshots: object[] }>(...query, "--cursor", page.cursor);
    expect(rest).toMatchObject({ cursor: null });
    // The windows of one type, on every page.
    expect([...page.snapshots, ...rest.snapshots]).toMatchObject([
      { window: "hourly" },
      { window: "hourly" },
    ]);
  });

  test("usage list says what is missing or wrong", async () => {
    expect(await run("usage", "list", "-e", "key-1", "--start", "soon")).toMatchObject({ code: 1 });
    expect(await run("usage", "list", "-e", "key-1", "--cursor", "x")).toMatchObject({ code: 1 });
    const both = await run("usage", "list", "-e", "key-1", "--plot", "--json");
    expect(both).toMatchObject({ code: 2, out: "" });
  });
});

describe("usage of a whole namespace", () => {
  test("usage list without an entity and a resource has every entity", async () => {
    const listed = await run("usage", "list");
    expect(listed).toMatchObject({ code: 0, err: "" });
    expect(rows(listed.out).map((row) => [row[0], row[3]])).toEqual([
      ["WINDOW", "ENTITY"],
      [hour(13), "key-2"],
      [hour(13), "key-1"],
      [hour(10), "key-1"],
    ]);
    const days = await json<{ snapshots: object[] }>("usage", "list", "-w", "daily");
    expect(days.snapshots).toMatchObject([{ entity_id: "key-1", window: "daily" }]);
    const summed = await json("usage", "summary");
    expect(summed).toMatchObject({ snapshot_count: 3, total: { rpm: 5, tpm: 1550 } });
  });

  test("usage top ranks entities by acquires or by a limit", async () => {
    const listed = await run("usage", "top");
    expect(listed).toMatchObject({ code: 0, err: "" });
    expect(rows(listed.out)).toEqual([
      ["ENTITY", "EVENTS", "CONSUMED", "RESOURCES"],
      ["key-1", "4", "rpm=4, tpm=1,500", "gpt-4"],
      ["key-2", "1", "rpm=1, tpm=50", "gpt-4"],
    ]);
    const found = await json("usage", "top", "-r", "gpt-4", "--by", "tpm", "-l", "1");
    expectShape(shapeOf(usage, "top"), found);
    expect(found).toMatchObject({ consumers: [{ entity_id: "key-1", counters: { tpm: 1500 } }] });
    expect((await run("usage", "top", "-w", "monthly")).out).toBe("No usage was counted\n");
  });
});

describe("usage summary", () => {
  test("a summary has sums and averages", async () => {
    const summed = await run("usage", "summary", "-e", "key-1", "-w", "hourly");
    expect(summed).toMatchObject({ code: 0, err: "" });
    expect(rows(summed.out).map((row) => row.filter((cell) => cell !== ""))).toEqual([
      ["Entity", "key-1"],
      ["Window", "hourly"],
      ["Snapshots", "2"],
      ["Time", `${hour(10)} to ${hour(13)}`],
      [],
      ["LIMIT", "TOTAL", "AVERAGE"],
      ["rpm", "4", "2.00"],
      ["tpm", "1,500", "750.00"],
    ]);
    const found = await json("usage", "summary", "-r", "gpt-4", "-w", "hourly");
    expectShape(shapeOf(usage, "summary"), found);
    expect(found).toMatchObject({ snapshot_count: 3, total: { rpm: 5, tpm: 1550 } });
    expect((await run("usage", "summary", "-e", "key-3")).out).toBe("No usage was counted\n");
  });
});

describe("usage list --plot", () => {
  test("usage list --plot draws a chart per limit with both axes, hours without usage at zero", async () => {
    const query = ["usage", "list", "-e", "key-1", "-w", "hourly", "--plot"];
    for (const columns of [60, 120]) {
      const { code, out, err } = await under({ columns }, ...query);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      const [rpm = "", tpm = "", footer] = out.trimEnd().split("\n\n");
      expect(rpm).toMatch(/^rpm, hourly\n/);
      expect(footer).toBe(`${hour(10)} to ${hour(13)}, 4 windows`);
      const lines = tpm.split("\n").slice(1);
      expect(lines[0]).toMatch(/^1,200 ┤/);
      expect(lines.at(-2)).toMatch(/^ {4}0 ┼─+$/);
      // Two of the four hours have no usage, and have their place all the same.
      expect(lines.at(-2)?.match(/─/g)).toHaveLength(32);
      expect(lines.at(-1)).toMatch(/^ {7}\d\d-\d\d 10:00 +\d\d-\d\d 13:00$/);
      const widest = Math.max(...out.split("\n").map((line) => line.length));
      expect(widest).toBeLessThanOrEqual(columns);
    }
  });

  test("a chart of a resource adds its entities up", async () => {
    const { code, out, err } = await run("usage", "list", "-r", "gpt-4", "--plot");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [rpm = ""] = out.split("\n\n");
    expect(rpm).toMatch(/^rpm, hourly\n3 ┤/);
  });

  test("one window type is drawn: the finest, or the one that is named", async () => {
    const { out } = await run("usage", "list", "-e", "key-1", "--plot");
    expect(out.match(/^\w+, \w+$/gm)).toEqual(["rpm, hourly", "tpm, hourly"]);
    const days = await run("usage", "list", "-e", "key-1", "--plot", "-w", "daily");
    expect(days.out.match(/^\w+, \w+$/gm)).toEqual(["rpm, daily", "tpm, daily"]);
  });
});
