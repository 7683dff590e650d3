import { readFileSync } from "node:fs";
import { createHandler, handlerFrom } from "@zae-limiter/aws/aggregator/lambda.ts";
import type { LambdaEvent, LambdaRecord } from "@zae-limiter/aws/aggregator/lambda-event.ts";
import { jsonLog } from "@zae-limiter/aws/aggregator/log.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { decodeUsage, type UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { describe, expect, test } from "vitest";
import { AT, bucketItem } from "./changes.ts";
import { CrashingStore } from "./crashing-store.ts";

/** Records of a real stream, written by the Python library. */
const SAMPLE = new URL(
  "../../../../../test/fixtures/golden/20-stream-records-sample.json",
  import.meta.url,
);

function record(before: Item | undefined, after: Item | undefined, sequence: number): LambdaRecord {
  const { PK = "", SK = "" } = after ?? before ?? {};
  return {
    eventName: before === undefined ? "INSERT" : after === undefined ? "REMOVE" : "MODIFY",
    eventSourceARN: "arn:aws:dynamodb:eu-west-1:1:table/t/stream/2024-01-01T00:00:00.000",
    dynamodb: {
      ApproximateCreationDateTime: AT / 1000,
      Keys: { PK: { S: PK }, SK: { S: SK } },
      SequenceNumber: String(sequence).padStart(21, "0"),
      ...(before === undefined ? {} : { OldImage: encodeItem(before) }),
      ...(after === undefined ? {} : { NewImage: encodeItem(after) }),
    },
  };
}

function handlerOver(store: MemoryItemStore = new MemoryItemStore({ clock: () => AT })) {
  const lines: Record<string, unknown>[] = [];
  const log = jsonLog({
    clock: () => AT,
    write: (line) => {
      expect(line.endsWith("\n")).toBe(true);
      lines.push(JSON.parse(line) as Record<string, unknown>);
    },
  });
  const timer = { nowMs: () => 0, sleep: async () => undefined };
  const handler = createHandler({ table: "t", store, clock: () => AT, log, timer });
  return { handler, store, lines };
}

async function usageOf(store: MemoryItemStore, partition: string): Promise<UsageSnapshot[]> {
  const found: UsageSnapshot[] = [];
  for await (const item of store.query({ partition })) {
    const snapshot = decodeUsage(item);
    if (snapshot !== undefined) found.push(snapshot);
  }
  return found;
}

describe("the Lambda handler", () => {
  test("an empty event changes nothing and fails nothing", async () => {
    const { handler, lines } = handlerOver();
    expect(await handler({ Records: [] })).toEqual({ batchItemFailures: [] });
    expect(await handler({})).toEqual({ batchItemFailures: [] });
    expect(lines[0]).toMatchObject({ records: 0, snapshots: 0, archived: 0, failures: 0 });
  });

  test("records of the Python library are counted, creations included", async () => {
    const { handler, store } = handlerOver();
    const Records = JSON.parse(readFileSync(SAMPLE, "utf8")) as LambdaRecord[];
    for (let times = 0; times < 2; times += 1) {
      expect(await handler({ Records })).toEqual({ batchItemFailures: [] });
    }
    const usage = await usageOf(store, "OJEOS3iJbYI/ENTITY#debt");
    expect(usage.map(({ windowType }) => windowType)).toEqual(["daily", "hourly", "monthly"]);
    for (const { counters, totalEvents, windowStart } of usage) {
      expect(counters).toEqual({ rpm: 1, tpm: 30_500 });
      expect(totalEvents).toBe(2);
      expect(windowStart.startsWith("2026-11-")).toBe(true);
    }
  });

  test("records that could not be counted are reported, and counted when they come again (op 71)", async () => {
    const store = new CrashingStore({ clock: () => AT });
    const { handler, lines } = handlerOver(store);
    const steps = [0, 1000, 3000].map((tpm) => bucketItem({ tc: { tpm } }));
    const event: LambdaEvent = {
      Records: [record(steps[0], steps[1], 7), record(steps[1], steps[2], 8)],
    };
    store.crashAfter(2, true);
    const { batchItemFailures } = await handler(event);
    expect(batchItemFailures.map(({ itemIdentifier }) => Number(itemIdentifier))).toEqual([7, 8]);
    expect(lines.at(-1)).toMatchObject({ level: "error", failed_records: 2, snapshots: 2 });
    store.restart();
    expect(await handler(event)).toEqual({ batchItemFailures: [] });
    const usage = await usageOf(store, "ns1/ENTITY#user-1");
    expect(usage.map(({ counters }) => counters.tpm)).toEqual([3, 3, 3]);
  });

  test("only the snapshots of one entity fail: the records of others are not reported", async () => {
    class PartlyDown extends MemoryItemStore {
      override async update(...args: Parameters<MemoryItemStore["update"]>) {
        if (args[0].PK !== "ns1/ENTITY#bad") return super.update(...args);
        throw new InfrastructureError("These AWS credentials may not call UpdateItem");
      }
    }
    const { handler, lines } = handlerOver(new PartlyDown({ clock: () => AT }));
    const { batchItemFailures } = await handler({
      Records: [
        record(undefined, bucketItem({ entity: "good", tc: { tpm: 1000 } }), 1),
        record(undefined, bucketItem({ entity: "bad", tc: { tpm: 1000 } }), 2),
        record(undefined, bucketItem({ entity: "fine", tc: { tpm: 1000 } }), 3),
      ],
    });
    expect(batchItemFailures.map(({ itemIdentifier }) => Number(itemIdentifier))).toEqual([2]);
    expect(lines.at(-1)).toMatchObject({ snapshots: 6, failures: 3, skipped: 0 });
  });

  test("a record that can never be written is skipped with a warning, and the rest is counted", async () => {
    const store = new MemoryItemStore({ clock: () => AT });
    const { handler, lines } = handlerOver(store);
    const broken = "#USAGE#gpt-4#hourly#2024-01-01T14:00:00Z";
    // A counter that is a text cannot be added to, however often it is tried.
    await store.put({ PK: "ns1/ENTITY#bad", SK: broken, tpm: "text" });
    const bad = bucketItem({ entity: "bad", tc: { tpm: 1000 } });
    const good = bucketItem({ entity: "good", tc: { tpm: 1000 } });
    const { batchItemFailures } = await handler({
      Records: [record(undefined, bad, 1), record(undefined, good, 2)],
    });
    expect(batchItemFailures).toEqual([]);
    expect(lines.filter(({ level }) => level === "error")).toMatchObject([
      {
        message: "a snapshot could not be written, and never can be: it is given up",
        pk: "ns1/ENTITY#bad",
        sk: broken,
        records: 1,
        error_code: "ZAEL_VALIDATION",
      },
    ]);
    expect(lines.at(-1)).toMatchObject({ snapshots: 5, failures: 1, skipped: 1 });
    const windows = (await usageOf(store, "ns1/ENTITY#bad")).filter(({ counters }) => counters.tpm);
    expect(windows.map(({ windowType }) => windowType)).toEqual(["daily", "monthly"]);
  });

  test("a record that is not one of DynamoDB is skipped with a warning, and the rest is counted", async () => {
    const { handler, store, lines } = handlerOver();
    const odd = { dynamodb: { SequenceNumber: "5" } };
    const unnumbered = { dynamodb: { Keys: { PK: { S: "p" }, SK: { S: "#STATE" } } } };
    const good = record(undefined, bucketItem({ tc: { tpm: 1000 } }), 1);
    const { batchItemFailures } = await handler({ Records: [odd, unnumbered, good] });
    expect(batchItemFailures).toEqual([]);
    expect(await usageOf(store, "ns1/ENTITY#user-1")).toHaveLength(3);
    expect(lines.filter(({ level }) => level === "warning")).toHaveLength(2);
    expect(lines.at(-1)).toMatchObject({ records: 3, failures: 2, skipped: 2 });
  });

  test("when the time runs out, work that was not begun is reported instead of cut off", async () => {
    const { handler, store } = handlerOver();
    const one = record(undefined, bucketItem({ tc: { tpm: 1000 } }), 1);
    const { batchItemFailures } = await handler(
      { Records: [one] },
      { getRemainingTimeInMillis: () => 1500 },
    );
    expect(batchItemFailures).toHaveLength(1);
    expect(await usageOf(store, "ns1/ENTITY#user-1")).toEqual([]);
  });

  test("the last line of the Lambda has the counters, and metrics for CloudWatch", async () => {
    const { handler, lines } = handlerOver();
    const context = { awsRequestId: "r-1", functionName: "f" };
    await handler({ Records: [record(undefined, bucketItem({ tc: { tpm: 1000 } }), 1)] }, context);
    const counters = [
      "records",
      "snapshots",
      "refills",
      "splits",
      "archived",
      "failures",
      "skipped",
      "lag_ms",
    ];
    expect(lines.at(-1)).toMatchObject({
      timestamp: "2024-01-01T14:35:22Z",
      level: "info",
      message: "invocation finished",
      request_id: "r-1",
      function_name: "f",
      Table: "t",
      records: 1,
      snapshots: 3,
      refills: 0,
      splits: 0,
      archived: 0,
      failures: 0,
      skipped: 0,
      lag_ms: 0,
      duration_ms: 0,
      _aws: {
        Timestamp: AT,
        CloudWatchMetrics: [
          {
            Namespace: "zae-limiter",
            Dimensions: [["Table"]],
            Metrics: counters.map((Name) => ({
              Name,
              Unit: Name === "lag_ms" ? "Milliseconds" : "Count",
            })),
          },
        ],
      },
    });
  });

  test("the environment of the Lambda is checked when it is first called", () => {
    const write = () => undefined;
    expect(() => handlerFrom({}, write)).toThrow(/TABLE_NAME/);
    const wrong = { TABLE_NAME: "t", SNAPSHOT_WINDOWS: "weekly" };
    expect(() => handlerFrom(wrong, write)).toThrow(/hourly, daily, monthly/);
    const days = { TABLE_NAME: "t", SNAPSHOT_TTL_DAYS: "0" };
    expect(() => handlerFrom(days, write)).toThrow(/SNAPSHOT_TTL_DAYS/);
    expect(handlerFrom({ TABLE_NAME: "t", SNAPSHOT_TTL_DAYS: "30" }, write)).toBeTypeOf("function");
  });
});
