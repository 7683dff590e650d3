/**
 * Metrics of what is rare, with the real SDK: outages, splits and warnings of a simulated table.
 */

import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { observe } from "@zae-limiter/limiter/otel/index.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import {
  SimulatedTable,
  type SimulatedTableOptions,
} from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect, it } from "vitest";

const TARGET = { entityId: "key-1", resource: "gpt-4" };

/** A limiter on a table in virtual time, and what the SDK exports of it. */
async function observed(limits: readonly string[], more: Partial<SimulatedTableOptions> = {}) {
  const time = new VirtualTime(1_800_000_000_000);
  const table = new SimulatedTable({ time, ...more });
  const onWarning = () => undefined;
  const limiter = await time.until(table.process().open({ timeoutMs: 500, onWarning }));
  await time.until(limiter.repository.limits.setSystem(limits));
  await time.until(limiter.acquire({ ...TARGET, consume: {} }));
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  const stop = observe(limiter, { meter: provider.getMeter("test"), tracer: false });
  /** Values by metric and by all labels but the namespace. */
  const collect = async (): Promise<Record<string, Record<string, unknown>>> => {
    exporter.reset();
    await provider.forceFlush();
    const metrics = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    return Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        Object.fromEntries(
          dataPoints.map(({ attributes, value }) => {
            const { "zae_limiter.namespace": _, ...labels } = attributes;
            return [Object.values(labels).join(" "), value];
          }),
        ),
      ]),
    );
  };
  const end = async () => {
    stop();
    await provider.shutdown();
  };
  return { time, table, limiter, collect, end };
}

it("an outage is counted as unavailable, or as degraded where calls pass", async () => {
  const { time, table, limiter, collect, end } = await observed(["rpm:100"]);
  table.faults = { lostRequests: 1 };
  const request = { ...TARGET, consume: { rpm: 1 } };
  const outcome = (onUnavailable: "allow" | "block") =>
    time.until(limiter.acquire({ ...request, onUnavailable }).catch((error: Error) => error.name));
  expect(await outcome("allow")).toMatchObject({ degraded: true });
  expect(await outcome("block")).toBe("RateLimiterUnavailable");
  expect((await collect())["zae_limiter.acquires"]).toEqual({
    "degraded gpt-4": 1,
    "unavailable gpt-4": 1,
  });
  await end();
});

it("splits and shards of a busy bucket are counted", async () => {
  // A partition that takes less than this one process writes to it.
  const slow = { throughput: { writeUnitsPerSecond: 300 }, latency: { medianMs: 1 } };
  const { time, limiter, collect, end } = await observed(["rpm:100000000"], slow);
  const request = { ...TARGET, consume: { rpm: 1 } };
  const lane = async () => {
    for (let call = 0; call < 1500; call += 1) {
      await limiter.tryAcquire(request).catch(() => undefined);
    }
  };
  await time.until(Promise.all([lane(), lane()]));
  const metrics = await collect();
  const splits = metrics["zae_limiter.bucket.splits"]?.["gpt-4"];
  expect(splits).toBeGreaterThanOrEqual(1);
  // Each split of the first shard doubles the bucket at least.
  const shards = metrics["zae_limiter.bucket.shards"]?.["gpt-4"];
  expect(shards).toBeGreaterThanOrEqual(2 ** Number(splits));
  await end();
});

it("warnings are counted by their kind", async () => {
  const { time, limiter, collect, end } = await observed(["rpm:100"]);
  const { namespaceId, entities, [INTERNALS]: internals } = limiter.repository;
  const forged = { PK: "elsewhere/ENTITY#x", SK: "#META", GSI4PK: namespaceId, GSI4SK: "x" };
  const inRange = { ...forged, GSI4SK: `${namespaceId}/ENTITY#x` };
  await time.until(internals.records.store.put(inRange));
  await time.until(entities.list());
  expect((await collect())["zae_limiter.warnings"]).toEqual({ foreign_items: 1 });
  await end();
});
