/** Metrics of a limiter, with the real SDK: in memory, and scraped from the Prometheus exporter. */

import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { RateLimiter, Repository } from "@zae-limiter/limiter/index.ts";
import { observe } from "@zae-limiter/limiter/otel/index.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { afterEach, describe, expect, it } from "vitest";

const REQUEST = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 5 } };

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function meters() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  ends.push(() => provider.shutdown());
  const collect = async (): Promise<MetricData[]> => {
    exporter.reset();
    await provider.forceFlush();
    return exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  };
  return { meter: provider.getMeter("test"), collect };
}

async function opened(limits: readonly string[]): Promise<RateLimiter> {
  const limiter = await RateLimiter.open("memory:");
  await limiter.repository.limits.setSystem(limits);
  ends.push(() => limiter.close());
  return limiter;
}

/** The values of a metric, by the attributes that say something here. */
function pointsOf(metrics: readonly MetricData[], name: string): [string, unknown][] {
  const found = metrics.find(({ descriptor }) => descriptor.name === name);
  return (found?.dataPoints ?? []).map(({ attributes, value }) => [
    Object.entries(attributes)
      .filter(([key]) => key !== "zae_limiter.namespace")
      .map(([, label]) => label)
      .join(" "),
    typeof value === "object" ? value.count : value,
  ]);
}

describe("the metrics of a limiter", () => {
  it("the metrics count acquires by outcome, limit and level, and tokens by what became of them", async () => {
    const limiter = await opened(["rpm:3/day", "tpm:100/day"]);
    const { meter, collect } = meters();
    const stop = observe(limiter, { meter, tracer: false });
    const lease = await limiter.acquire(REQUEST);
    lease.adjust({ tpm: 7 });
    await lease.commit();
    await (await limiter.acquire(REQUEST)).rollback();
    await limiter.acquire({ ...REQUEST, consume: { rpm: 2 } });
    expect((await limiter.tryAcquire(REQUEST)).granted).toBe(false);
    const metrics = await collect();
    expect(pointsOf(metrics, "zae_limiter.acquires")).toEqual([
      ["granted gpt-4", 3],
      ["refused gpt-4 rpm entity", 1],
    ]);
    expect(pointsOf(metrics, "zae_limiter.tokens.consumed")).toEqual([
      ["gpt-4 rpm", 4],
      ["gpt-4 tpm", 10],
    ]);
    expect(pointsOf(metrics, "zae_limiter.tokens.adjusted")).toEqual([["gpt-4 tpm more", 7]]);
    expect(pointsOf(metrics, "zae_limiter.tokens.refunded")).toEqual([
      ["gpt-4 rpm", 1],
      ["gpt-4 tpm", 5],
    ]);
    expect(pointsOf(metrics, "zae_limiter.acquire.duration")).toEqual([
      ["granted gpt-4", 3],
      ["refused gpt-4", 1],
    ]);
    expect(pointsOf(metrics, "zae_limiter.cache.lookups")).toEqual([
      ["hit", expect.any(Number)],
      ["miss", expect.any(Number)],
    ]);
    stop();
    await limiter.tryAcquire(REQUEST);
    // What was counted before stays exported, and nothing is added.
    expect(pointsOf(await collect(), "zae_limiter.acquires")).toContainEqual([
      "refused gpt-4 rpm entity",
      1,
    ]);
  });

  it("the metrics of a limiter show the slots that its leases hold, apart from tokens", async () => {
    const limiter = await opened(["rpm:100/day", "parallel:5 concurrent"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    const request = { ...REQUEST, consume: { rpm: 1, parallel: 2 } };
    const [first, second] = [await limiter.acquire(request), await limiter.acquire(request)];
    const held = async () => pointsOf(await collect(), "zae_limiter.slots.held");
    expect(await held()).toEqual([["gpt-4 parallel", 4]]);
    first.release({ parallel: 1 });
    expect(await held()).toEqual([["gpt-4 parallel", 3]]);
    await first.commit();
    await second.rollback();
    await limiter.repository.limits.bypass({ resource: "gpt-4" });
    const bypassed = await limiter.acquire(request);
    expect(await held()).toEqual([["gpt-4 parallel", 0]]);
    await bypassed.commit();
    const metrics = await collect();
    expect(pointsOf(metrics, "zae_limiter.slots.held")).toEqual([["gpt-4 parallel", 0]]);
    expect(pointsOf(metrics, "zae_limiter.tokens.refunded")).toEqual([["gpt-4 rpm", 1]]);
  });

  it("slots that came too late for their lease are not counted as held", async () => {
    const limiter = await opened(["rpm:100/day", "parallel:5 concurrent"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    const lease = await limiter.acquire({ ...REQUEST, consume: { rpm: 1 } });
    const late = lease.consume({ parallel: 2 });
    await lease.commit();
    await expect(late).rejects.toThrow("not active any more");
    const held = pointsOf(await collect(), "zae_limiter.slots.held");
    expect(held).toEqual([["gpt-4 parallel", 0]]);
  });

  it("name the parent that refused", async () => {
    const limiter = await opened(["rpm:100"]);
    const { entities, limits } = limiter.repository;
    await entities.create({ id: "team" });
    await entities.create({ id: "key-1", parentId: "team", cascade: true });
    await limits.setEntity("team", ["rpm:1/day"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    const request = { ...REQUEST, consume: { rpm: 1 } };
    await limiter.acquire(request);
    await limiter.tryAcquire(request);
    expect(pointsOf(await collect(), "zae_limiter.acquires")).toEqual([
      ["granted gpt-4", 1],
      ["refused gpt-4 rpm parent", 1],
    ]);
  });

  it("the metrics of a limiter show the queue while requests wait, and the time they have waited", async () => {
    const limiter = await opened(["rpd:1/day"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    const request = { ...REQUEST, consume: { rpd: 1 }, maxWaitSeconds: 100_000 };
    const lease = await limiter.acquire(request);
    const waiting = limiter.acquire(request);
    const queueSize = async () => pointsOf(await collect(), "zae_limiter.queue.size");
    await expect.poll(queueSize).toEqual([["", 1]]);
    // The refund wakes the waiter.
    await lease.rollback();
    await waiting;
    const metrics = await collect();
    expect(pointsOf(metrics, "zae_limiter.queue.size")).toEqual([["", 0]]);
    expect(pointsOf(metrics, "zae_limiter.acquire.time_in_queue")).toEqual([["granted gpt-4", 2]]);
  });

  it("the metrics of a limiter give the busiest entities a label of their own where that is asked for", async () => {
    const limiter = await opened(["rpm:1000000/sec"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false, entityLabel: { max: 2 } }));
    const take = (entityId: string) =>
      limiter.acquire({ entityId, resource: "api", consume: { rpm: 1 } });
    for (let at = 0; at < 20; at += 1)
      await Promise.all([take("a"), take(`once-${at}`), take("b")]);
    for (let at = 0; at < 20; at += 1) await take("late");
    expect(pointsOf(await collect(), "zae_limiter.acquires")).toEqual([
      ["granted api other", 58],
      ["granted api a", 11],
      ["granted api b", 11],
    ]);
  });

  it("the metrics of a limiter count the resources that came too late together", async () => {
    const limiter = await opened(["rpm:1000000/sec", "tpm:1000000/sec"]);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    for (let at = 0; at < 203; at += 1) {
      for (const tpm of [2, 3]) {
        const resource = `resource-${at}`;
        const lease = await limiter.acquire({ entityId: "a", resource, consume: { rpm: 1, tpm } });
        lease.settle({ tpm: 10 * (tpm - 2) });
        await lease.commit();
      }
    }
    const metrics = await collect();
    const isWanted = ([labels]: readonly [string, unknown]) => /resource-199|other/.test(labels);
    const wanted = (name: string) => pointsOf(metrics, name).filter(isWanted);
    expect(wanted("zae_limiter.acquires")).toEqual([
      ["granted resource-199", 2],
      ["granted other", 6],
    ]);
    expect(wanted("zae_limiter.tokens.consumed")).toEqual([
      ["resource-199 rpm", 2],
      ["resource-199 tpm", 5],
      ["other rpm", 6],
      ["other tpm", 15],
    ]);
    expect(wanted("zae_limiter.tokens.adjusted")).toEqual([
      ["resource-199 tpm less", 2],
      ["resource-199 tpm more", 7],
      ["other tpm less", 6],
      ["other tpm more", 21],
    ]);
  });

  it("the metrics of a limiter refuse options that are wrong", async () => {
    const limiter = await opened(["rpm:1"]);
    const wrong = (options: object) => () => observe(limiter, options);
    expect(wrong({ metre: 1 })).toThrow(/"metre" is not|expected/);
    expect(wrong({ entityLabel: { max: 0 } })).toThrow(/entityLabel\.max/);
    expect(wrong({ entityLabel: true })).toThrow(/expected false or \{ max \}/);
    expect(() => observe({} as RateLimiter)).toThrow(/expected a RateLimiter/);
  });
});

describeEngines("the metrics of requests", ({ endpoint }) => {
  it("the metrics of requests count them by operation and outcome, with their duration and price", async () => {
    const table = `otel-${crypto.randomUUID()}`;
    const repository = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    await repository.limits.setSystem(["rpm:100"]);
    const limiter = new RateLimiter(repository);
    ends.push(() => limiter.close());
    const request = { ...REQUEST, consume: { rpm: 1 } };
    await limiter.acquire(request);
    const { meter, collect } = meters();
    ends.push(observe(limiter, { meter, tracer: false }));
    await limiter.acquire(request);
    const metrics = await collect();
    const update = "aws.dynamodb UpdateItem";
    expect(pointsOf(metrics, "zae_limiter.store.calls")).toEqual([[`${update} ok`, 1]]);
    expect(pointsOf(metrics, "zae_limiter.store.capacity")).toEqual([[`${update} write`, 1]]);
    expect(pointsOf(metrics, "db.client.operation.duration")).toEqual([[`${update} ${table}`, 1]]);
  });
});

it("a scrape by Prometheus has the same series for 1 and for 100,000 entities", async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const server = createServer((request, response) => {
    exporter.getMetricsRequestHandler(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  ends.push(() => server.close());
  const provider = new MeterProvider({ readers: [exporter] });
  ends.push(() => provider.shutdown());
  const limiter = await opened(["rpm:2/day"]);
  ends.push(observe(limiter, { meter: provider.getMeter("test"), tracer: false }));
  const take = (entityId: string) =>
    limiter.tryAcquire({ entityId, resource: "api", consume: { rpm: 1 } });
  const scrape = async () => {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
    return (await answer.text()).split("\n").filter((line) => /^\w/.test(line));
  };
  for (let at = 0; at < 3; at += 1) await take("first");
  const before = await scrape();
  expect(before).toContainEqual(
    expect.stringMatching(/^zae_limiter_acquires_total\{.*zae_limiter_outcome="refused".*\} 1$/),
  );
  // The limiter makes these messages; here they only differ in the entity.
  const granted: { event: { entityId: string } }[] = [];
  const listener = (message: unknown) => granted.push(message as { event: { entityId: string } });
  subscribe("zae-limiter:event", listener);
  await take("second");
  unsubscribe("zae-limiter:event", listener);
  const [message] = granted;
  for (let at = 1; at < 100_000; at += 1) {
    const event = { ...message?.event, entityId: `key-${at}` };
    channel("zae-limiter:event").publish({ ...message, event });
  }
  const after = await scrape();
  const names = (lines: readonly string[]) => lines.map((line) => line.replace(/ [^ ]*$/, ""));
  expect(names(after)).toEqual(names(before));
  expect(after).toContainEqual(
    expect.stringMatching(/^zae_limiter_acquires_total\{.*outcome="granted".*\} 100002$/),
  );
});
