/** Metrics stay bounded, whatever labels come. */

import type { Attributes } from "@opentelemetry/api";
import { PrometheusMeter } from "@zae-limiter/limiter/otel/prometheus-meter.ts";
import { Tally } from "@zae-limiter/limiter/otel/tally.ts";
import { expect, test } from "vitest";

function observed(tally: Tally): [Attributes, number][] {
  const sums: [Attributes, number][] = [];
  tally.observe({ observe: (value, attributes = {}) => void sums.push([attributes, value]) });
  return sums;
}

test("a tally that is full adds further values to one sum, and loses nothing", () => {
  const tally = new Tally(["resource", "limit"], 3);
  for (let name = 0; name < 100; name += 1) tally.add(2, `model-${name}`, "rpm");
  tally.add(1, "model-0", "rpm");
  expect(observed(tally)).toEqual([
    [{ resource: "model-0", limit: "rpm" }, 3],
    [{ resource: "model-1", limit: "rpm" }, 2],
    [{ resource: "model-2", limit: "rpm" }, 2],
    [{ resource: "other", limit: "other" }, 194],
  ]);
});

test("a tally keeps 5,000 sums where nothing else is said", () => {
  const tally = new Tally(["resource"]);
  for (let name = 0; name < 20_000; name += 1) tally.add(1, `model-${name}`);
  const sums = observed(tally);
  expect(sums).toHaveLength(5001);
  expect(sums.reduce((total, [, value]) => total + value, 0)).toBe(20_000);
});

test("a histogram keeps 1,000 series and counts the rest in one", () => {
  const meter = new PrometheusMeter();
  const histogram = meter.createHistogram("time", { advice: { explicitBucketBoundaries: [1] } });
  for (let name = 0; name < 5000; name += 1) {
    histogram.record(0.5, { resource: `model-${name}` });
  }
  histogram.record(0.5, { resource: "model-0" });
  const counts = meter
    .text()
    .split("\n")
    .filter((line) => line.startsWith("time_count"));
  expect(counts).toHaveLength(1001);
  expect(counts[0]).toBe('time_count{resource="model-0"} 2');
  expect(counts.at(-1)).toBe('time_count{resource="other"} 4000');
});
