/** `demo --dashboard`: live traffic in a temporary store, shown in the browser until Ctrl-C. */

import { serveDashboard } from "@zae-limiter/dashboard/server/serve.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { type Random, randomInteger } from "@zae-limiter/limiter/base/random.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { announce } from "../dashboard/announce.ts";
import type { DashboardFlags } from "../dashboard/options.ts";
import { checkedToken } from "../dashboard/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { openTemporary, withTemporaryStore } from "./temporary-store.ts";

/** A key, how often it calls, and how many tokens a call has. */
interface Caller {
  readonly id: string;
  readonly project: string;
  readonly resource: "gpt-4o" | "claude-sonnet" | "embeddings";
  /** Calls per second. */
  readonly rate: number;
  readonly tokens: number;
}

const TRIAGE: Caller = {
  id: "triage",
  project: "support",
  resource: "claude-sonnet",
  rate: 0.7,
  tokens: 700,
};

const CALLERS: readonly Caller[] = [
  { id: "web-chat", project: "search", resource: "gpt-4o", rate: 1.2, tokens: 900 },
  { id: "nightly-batch", project: "search", resource: "gpt-4o", rate: 2.2, tokens: 1400 },
  { id: "agent-7", project: "support", resource: "claude-sonnet", rate: 0.8, tokens: 2600 },
  TRIAGE,
  { id: "indexer", project: "data", resource: "embeddings", rate: 1.8, tokens: 350 },
  { id: "reports", project: "data", resource: "gpt-4o", rate: 0.4, tokens: 1800 },
];

const PROJECTS: readonly (readonly [id: string, organization: string, name: string])[] = [
  ["search", "acme", "Search"],
  ["support", "acme", "Support desk"],
  ["data", "globex", "Data platform"],
];

const HOUR_MS = 3_600_000;
/** Hours before now for which usage is made up; entities are an hour older. */
const HISTORY_HOURS = 47;
const BUSY_SECONDS = 22;
const TICK_MS = 250;

/** Runs until the command is interrupted. */
export function runDashboardDemo(
  terminal: Terminal,
  random: Random,
  flags: DashboardFlags & { readonly json: boolean },
): Promise<never> {
  const token = checkedToken(flags.host, undefined);
  return withTemporaryStore(terminal, async (url, signal) => {
    const nowMs = systemClock();
    // The history runs in virtual time; the live traffic then uses the real clock.
    let pastMs: number | undefined = nowMs - (HISTORY_HOURS + 1) * HOUR_MS;
    const repository = await openTemporary(url, () => pastMs ?? systemClock());
    const limiter = new RateLimiter(repository);
    const call = (caller: Caller) => callOnce(limiter, caller, random);
    try {
      await createFleet(repository);
      for (let hour = HISTORY_HOURS; hour >= 1; hour -= 1) {
        const atMs = nowMs - hour * HOUR_MS;
        for (const [at, caller] of CALLERS.entries()) {
          pastMs = atMs + at * 1000;
          await repeat(2 + Math.round(3 * daylight(atMs) * caller.rate), () => call(caller));
        }
      }
      pastMs = undefined;
      // A busy moment empties some buckets, and one goes into debt.
      for (const caller of CALLERS) {
        await repeat(Math.round(caller.rate * BUSY_SECONDS), () => call(caller));
      }
      await overdraw(limiter, TRIAGE);
      const served = await serveDashboard(repository, {
        ...flags,
        token,
        readOnly: false,
        limiter,
      });
      try {
        announce(served.url, terminal, flags);
        while (!signal.aborted) {
          const due = CALLERS.filter(({ rate }) => random() < (rate * TICK_MS) / 1000);
          for (const caller of due) await call(caller);
          await terminal.timer.sleep(TICK_MS, signal);
        }
        throw signal.reason;
      } finally {
        await served.close();
      }
    } finally {
      await limiter.close();
    }
  });
}

async function createFleet({ entities, limits }: Repository): Promise<void> {
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
  const ofBatch = ["rpm:90", "tpm:60000/min:30000"];
  await limits.setEntity("nightly-batch", ofBatch, { principal: "maria" });
  const resource = "claude-sonnet";
  await limits.setEntity("agent-7", ["rpm:30", "tpm:50000"], { resource, principal: "maria" });
  await limits.setEntity("agent-7", ["rpm:40", "tpm:48000"], { resource, principal: "jonas" });
}

async function callOnce(
  limiter: RateLimiter,
  { id: entityId, resource, tokens }: Caller,
  random: Random,
): Promise<void> {
  const consume = { rpm: 1, tpm: Math.ceil(tokens * (0.6 + 0.8 * random())) };
  const decision = await limiter.tryAcquire({ entityId, resource, consume });
  if (!decision.granted) return;
  decision.lease.adjust({ tpm: randomInteger(random, 400) - 150 });
  await decision.lease.commit();
}

async function overdraw(limiter: RateLimiter, { id: entityId, resource }: Caller): Promise<void> {
  const lease = await limiter.acquire({ entityId, resource, consume: { tpm: 100 } });
  lease.adjust({ tpm: 125_000 });
  await lease.commit();
}

/** Returns 0 to 2: calls are more frequent by day than by night. */
function daylight(ms: number): number {
  return 1 + Math.sin((new Date(ms).getUTCHours() / 24) * 2 * Math.PI - 2);
}

async function repeat(times: number, work: () => Promise<void>): Promise<void> {
  for (let done = 0; done < times; done += 1) await work();
}
