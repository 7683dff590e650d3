import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { runAggregator } from "@zae-limiter/aws/aggregator/run.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "zae-limiter-aggregate-"));
const url = `sqlite:${join(folder, "limits.db")}`;
const DAY_MS = 86_400_000;

beforeAll(async () => {
  // Audit events of four months ago, and something today that lets them go.
  const past = await Repository.open(url, { clock: () => Date.now() - 120 * DAY_MS });
  await past.entities.create({ id: "old-1", principal: "ops" });
  await past.entities.create({ id: "old-2" });
  await past.close();
  const repo = await Repository.open(url);
  for (let at = 0; at < 3; at += 1) await repo.entities.create({ id: `new-${at}` });
  await repo.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("the command aggregate", () => {
  test("the help of aggregate shows its options", async () => {
    const { code, out } = await cli(["aggregate", "--help"]);
    expect(code).toBe(0);
    for (const flag of ["--windows", "--archive", "--lease-seconds", "--log-level", "--url"]) {
      expect(out).toContain(flag);
    }
  });

  test("a store that counts usage itself needs no aggregator, and the command says so and ends", async () => {
    const { code, out, err } = await cli(["aggregate", "--url", url]);
    expect([code, out]).toEqual([0, ""]);
    expect(err).toMatch(/^Not needed: .*limits\.db counts usage itself\. With --archive/);
  });

  test("the command aggregate follows a file, archives what expired, logs JSON, and stops in good order", async () => {
    const archive = join(folder, "audit");
    const { code, out } = await cli(
      ["aggregate", "--url", url, "--archive", archive, "--log-level", "debug"].concat([
        "--batch-seconds",
        "0",
        "--lease-seconds",
        "1",
      ]),
      {
        onOutput: (text, interrupt) => {
          if (text.includes('"archived":2')) interrupt("SIGTERM");
        },
      },
    );
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed[0]).toMatchObject({ level: "info", message: "aggregator started" });
    expect(parsed.at(-1)).toMatchObject({
      message: "aggregator stopped",
      archived: 2,
      failures: 0,
    });
    const files = readdirSync(archive, { recursive: true }).map(String);
    const objects = files.filter((file) => file.endsWith(".jsonl.gz"));
    const events = objects.flatMap((file) =>
      gunzipSync(readFileSync(join(archive, file)))
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { entity_id: string }).entity_id),
    );
    expect(events.toSorted()).toEqual(["old-1", "old-2"]);
  });

  test("the command aggregate refuses what there is nothing to follow in, and wrong windows", async () => {
    const missing = await cli(["aggregate", "--url", `sqlite:${join(folder, "no.db")}`]);
    expect(missing.code).toBe(1);
    expect(missing.err).toContain("There is no file");
    expect((await cli(["aggregate", "--url", "memory:"])).code).toBe(2);
    const windows = await cli(["aggregate", "--url", url, "--windows", "weekly"]);
    expect(windows.code).toBe(1);
    expect(windows.err).toContain("hourly, daily, monthly");
    expect((await cli(["aggregate", "--url", url, "--lease-seconds", "0"])).code).toBe(2);
  });
});

describe("options of runAggregator", () => {
  test.each([
    { windows: [] },
    { windows: ["weekly"] as never },
    { retentionDays: 0 },
    { leaseSeconds: 0.5 },
    { batchSize: 0 },
    { logLevel: "loud" as never },
    { archive: "ftp://somewhere" },
    { archive: "s3://" },
    { windowz: ["daily"] } as never,
  ])("the aggregator refuses the options %j", async (options) => {
    await expect(runAggregator("memory:", options)).rejects.toThrow(/Invalid/);
  });
});
