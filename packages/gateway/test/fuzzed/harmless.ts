/** Expects of a gateway that no hostile request harms it. */

import { expect } from "vitest";
import { type FuzzReport, fuzz } from "./fuzz.ts";
import { FuzzedGateway } from "./fuzzed-gateway.ts";

const MIB = 1024 * 1024;
/** The growth that one kind may cause: caches are bounded, and compiled code is kept. */
const HEAP_GROWTH_MAX = 12 * MIB;
const RSS_GROWTH_MAX = 400 * MIB;
/** Requests that may reach the provider. */
const FORWARDED = /^POST \/v1\/(?:chat\/completions|responses|messages)$|^GET \/v1\/models$/;

/** Sends hostile requests, and expects bounded costs; returns a report for each kind. */
export async function expectHarmless(requests: number, seed: number): Promise<FuzzReport[]> {
  const gateway = await FuzzedGateway.start();
  try {
    const before = await gateway.cost();
    const reports = await fuzz(gateway, requests, seed);
    for (const report of reports) {
      const shown = JSON.stringify(report);
      expect(report.calls, shown).toBeLessThan(report.callsMax);
      expect(report.heapGrowthBytes, shown).toBeLessThan(HEAP_GROWTH_MAX);
      expect(Object.keys(report.statuses), shown).not.toContain("500");
      expect(Object.keys(report.among), shown).toEqual(["200"]);
    }
    const after = await gateway.cost();
    expect(after.rssBytes - before.rssBytes).toBeLessThan(RSS_GROWTH_MAX);
    const odd = gateway.upstream.arrived
      .map(({ method, path }) => `${method} ${path.split("?", 1)[0]}`)
      .filter((line) => !FORWARDED.test(line));
    expect(odd).toEqual([]);
    await expect.poll(() => gateway.openRequests()).toBe(0);
    expect(gateway.warnings).toEqual([]);
    return reports;
  } finally {
    await gateway.stop();
  }
}
