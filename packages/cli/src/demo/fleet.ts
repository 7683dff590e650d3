/** The data of `demo --dashboard`: two organizations with keys, two days of usage, traffic. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { type Random, randomInteger } from "@zae-limiter/limiter/base/random.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

const RESOURCES = ["gpt-4o", "claude-sonnet", "embeddings"] as const;

/** A key, how often it calls, and how many tokens a call has. */
interface Caller {
  readonly id: string;
  readonly project: string;
  readonly resource: (typeof RESOURCES)[number];
  /** Calls per second. */
  readonly rate: number;
  readonly tokens: number;
}

const CALLERS: readonly Caller[] = [
  { id: "web-chat", project: "search", resource: "gpt-4o", rate: 1.2, tokens: 900 },
  { id: "nightly-batch", project: "search", resource: "gpt-4o", rate: 2.2, tokens: 1400 },
  { id: "agent-7", project: "support", resource: "claude-sonnet", rate: 0.8, tokens: 2600 },
  { id: "triage", project: "support", resource: "claude-sonnet", rate: 0.7, tokens: 700 },
  { id: "indexer", project: "data", resource: "embeddings", rate: 1.8, tokens: 350 },
  { id: "reports", project: "data", resource: "gpt-4o", rate: 0.4, tokens: 1800 },
];

const PROJECTS: readonly (readonly [id: string, organization: string, name: string])[] = [
  ["search", "acme", "Search"],
  ["support", "acme", "Support desk"],
  ["data", "globex", "Data platform"],
];

const HOUR_MS = 3_600_000;
const HISTORY_HOURS = 47;
const BUSY_SECONDS = 22;

/** Creates entities and limits on an empty store. */
export async function createFleet({ entities, limits }: Repository): Promise<void> {
  const principal = "setup";
  await entities.create({ id: "acme", name: "Acme Inc.", metadata: { plan: "scale" }, principal });
  await entities.create({ id: "globex", name: "Globex", metadata: { plan: "team" }, principal });
  for (const [id, parentId, name] of PROJECTS) {
    await entities.create({ id, name, parentId, cascade: true, principal });
  }
  for (const { id, project } of CALLERS) {
    await entities.create({ id, parentId: project, cascade: true, principal });
  }
  await limits.setSystem(["rpm:60", "tpm:40000"], { principal });
  await limits.setResource("gpt-4o", ["rpm:80", "tpm:60000"], { principal });
  await limits.setResource("claude-sonnet", ["rpm:50", "tpm:120000"], { principal });
  await limits.setEntity("acme", ["rpm:400", "tpm:400000"], { principal });
  await limits.setEntity("search", ["rpm:200", "tpm:140000"], { principal });
  await limits.setEntity("nightly-batch", ["rpm:90", "tpm:60000/min:30000"], {
    principal: "maria",
  });
  const resource = "claude-sonnet";
  await limits.setEntity("agent-7", ["rpm:30", "tpm:50000"], { resource, principal: "maria" });
  await limits.setEntity("agent-7", ["rpm:40", "tpm:48000"], { resource, principal: "jonas" });
}

/** Makes usage of the last two days, hour by hour: more by day than by night. */
export async function useInThePast(
  limiter: RateLimiter,
  random: Random,
  moveTo: (ms: number) => void,
  nowMs: number,
): Promise<void> {
  for (let hour = HISTORY_HOURS; hour >= 1; hour -= 1) {
    const atMs = nowMs - hour * HOUR_MS;
    const daylight = 1 + Math.sin((new Date(atMs).getUTCHours() / 24) * 2 * Math.PI - 2);
    for (const [at, caller] of CALLERS.entries()) {
      moveTo(atMs + at * 1000);
      const calls = 2 + Math.round(3 * daylight * caller.rate);
      for (let call = 0; call < calls; call += 1) await one(limiter, caller, random);
    }
  }
}

/** Brings buckets to where they are after a busy minute: some nearly empty, one in debt. */
export async function useUp(limiter: RateLimiter, random: Random): Promise<void> {
  for (const caller of CALLERS) {
    const calls = Math.round(caller.rate * BUSY_SECONDS);
    for (let call = 0; call < calls; call += 1) await one(limiter, caller, random);
  }
  const { id: entityId, resource } = CALLERS[3] as Caller;
  const lease = await limiter.acquire({ entityId, resource, consume: { tpm: 100 } });
  lease.adjust({ tpm: 125_000 });
  await lease.commit();
}

/** The calls of a fraction of a second. */
export async function useNow(limiter: RateLimiter, random: Random, seconds: number): Promise<void> {
  for (const caller of CALLERS) {
    if (random() < caller.rate * seconds) await one(limiter, caller, random);
  }
}

async function one(limiter: RateLimiter, caller: Caller, random: Random): Promise<void> {
  const { id, resource, tokens } = caller;
  const estimated = Math.ceil(tokens * (0.6 + 0.8 * random()));
  const consume = { rpm: 1, tpm: estimated };
  const decision = await limiter.tryAcquire({ entityId: id, resource, consume });
  if (!decision.granted) return;
  decision.lease.adjust({ tpm: randomInteger(random, 400) - 150 });
  await decision.lease.commit();
}
