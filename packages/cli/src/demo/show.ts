/** The demo itself, on an empty store: a project, its traffic, and a summary. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { planCalls, TRAFFIC_MS } from "./callers.ts";
import { type CallReport, Gateway } from "./gateway.ts";
import { Live } from "./live.ts";
import { Narrator } from "./narrator.ts";
import {
  type Allowance,
  allowances,
  createProject,
  KEYS,
  RESOURCE,
  raiseBatch,
  tellProject,
} from "./project.ts";
import type { Pace, StageTime } from "./stage-time.ts";
import { tellAudit, tellNext, tellSummary, tellUsage } from "./summary.ts";
import { Tally } from "./tally.ts";

/** How long the introduction stands before it is scrolled away. */
const INTRODUCTION_MS = 4000;
const TICK_MS = 100;
const FRAME_MS = 200;
/** How often the bars come between the lines, where nothing is drawn over. */
const PLAIN_FRAME_MS = 10_000;
const CHANGE_MS = 14_000;

/** The terminal, the store, the time and the randomness of the demo. */
interface Stage {
  readonly terminal: Terminal;
  readonly repository: Repository;
  readonly time: StageTime;
  readonly random: Random;
  readonly pace: Pace;
}

/** The result of the demo, for programs. */
export interface Shown {
  readonly allowances: readonly Allowance[];
  readonly calls: readonly CallReport[];
  readonly tally: Tally;
  readonly usage: readonly UsageSnapshot[];
  readonly statuses: readonly LimitStatus[];
}

export async function show(stage: Stage): Promise<Shown> {
  const { terminal, repository, pace } = stage;
  const narrator = new Narrator(terminal);
  const { title } = narrator.palette;
  narrator.say(`${title(`zae-limiter ${CLIENT_VERSION}`)}: limits at work, in a temporary store`);
  await createProject(repository);
  const all = await allowances(repository);
  tellProject(narrator, all);
  const seconds = TRAFFIC_MS / 1000;
  narrator.chapter(`${seconds} seconds of a gateway: consume an estimate, call, correct it`);
  await pace(INTRODUCTION_MS);
  const { calls, tally, statuses } = await perform(stage);
  tellSummary(narrator, tally);
  const query = { resource: RESOURCE, window: "hourly" } as const;
  const { snapshots: usage } = await repository.usage.snapshots(query);
  tellUsage(narrator, usage);
  tellAudit(narrator, await repository.audit.list("batch"));
  tellNext(narrator, terminal.env);
  return { allowances: all, calls, tally, usage, statuses };
}

async function perform({ terminal, repository, time, random, pace }: Stage) {
  const limiter = new RateLimiter(repository);
  const tally = new Tally();
  const live = new Live(terminal, tally);
  const calls: CallReport[] = [];
  const gateway = new Gateway(limiter, time, (call) => {
    calls.push(call);
    tally.add(call);
    live.tellCall(call);
  });
  for (const call of planCalls(random)) gateway.expect(call);
  gateway.at(CHANGE_MS, async () => live.tell(CHANGE_MS, "ops", await raiseBatch(repository)));
  const frameMs = terminal.isTerminal ? FRAME_MS : PLAIN_FRAME_MS;
  try {
    for (let atMs = TICK_MS; atMs <= TRAFFIC_MS; atMs += TICK_MS) {
      await pace(INTRODUCTION_MS + atMs);
      await gateway.until(atMs);
      if (atMs % frameMs === 0) live.show(atMs, await look(limiter));
    }
  } finally {
    live.leave();
  }
  return { calls, tally, statuses: await look(limiter) };
}

/** The limits of the project, then those of its keys. */
async function look(limiter: RateLimiter): Promise<LimitStatus[]> {
  const project = new Map<string, LimitStatus>();
  const keys: LimitStatus[] = [];
  for (const entityId of KEYS) {
    for (const status of await limiter.status({ entityId, resource: RESOURCE })) {
      if (status.entityId === entityId) keys.push(status);
      // Every key shows the limits of the project again.
      else project.set(status.limitName, status);
    }
  }
  return [...project.values(), ...keys];
}
