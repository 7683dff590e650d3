/** The demo: a project with limits, half a minute of its traffic as it happens, and a summary. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { bars } from "../terminal/bars.ts";
import { Drawing } from "../terminal/drawing.ts";
import { duration, withThousands } from "../terminal/numbers.ts";
import { type Column, right, table } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { nextSteps } from "./next-steps.ts";
import { openTemporary, withTemporaryStore } from "./temporary-store.ts";
import {
  type CallReport,
  createProject,
  KEYS,
  PROJECT,
  RESOURCE,
  TRAFFIC_MS,
  Traffic,
} from "./traffic.ts";

/** Time to read the introduction, in milliseconds. */
const INTRODUCTION_MS = 4000;
const TICK_MS = 100;
/** Time between two pictures on a terminal, where one is drawn over the other, and elsewhere. */
const FRAME_MS = { terminal: 200, plain: 10_000 } as const;
/** The time at which an operator raises the limits of a key. */
const RAISE_MS = 14_000;
/** Lines below the picture on a terminal. */
const NEWS_MAX = 6;

const STORED_FOR = {
  entity: "this entity, this resource",
  entity_default: "this entity, any resource",
  parent: "children of the parent, this resource",
  parent_default: "children of the parent, any resource",
  resource: "the resource",
  system: "the system",
} as const;

const PAINTS = { answered: "good", refused: "bad", failed: "warning" } as const;

/** The result of the demo, for programs. */
export type Shown = Awaited<ReturnType<typeof show>>;

interface Stage {
  readonly terminal: Terminal;
  readonly repository: Repository;
  readonly random: Random;
  readonly pause: (ms: number) => Promise<void>;
  /** Sets the time of the store, in milliseconds since the beginning. */
  readonly moveTo: (ms: number) => void;
}

/** Runs the demo; with `isPaced`, a second of it takes a second. */
export function runDemo(terminal: Terminal, random: Random, isPaced: boolean): Promise<Shown> {
  return withTemporaryStore(terminal, async (url, signal) => {
    const pause = async (ms: number) => {
      await terminal.timer.sleep(isPaced ? ms : 0, signal);
      signal.throwIfAborted();
    };
    const startMs = (terminal.clock ?? systemClock)();
    let passedMs = 0;
    const moveTo = (ms: number) => {
      passedMs = ms;
    };
    const repository = await openTemporary(url, () => startMs + passedMs);
    try {
      return await show({ terminal, repository, random, pause, moveTo });
    } finally {
      await repository.close();
    }
  });
}

async function show(stage: Stage) {
  const { terminal, repository } = stage;
  const { palette } = terminal;
  const say = (text: string) => terminal.out(`${text}\n`);
  const chapter = (title: string) => say(`\n${palette.title(title)}`);
  const rows = async (columns: readonly Column[], cells: readonly (readonly string[])[]) =>
    say((await table(columns, cells, palette.faint)).replace(/^/gm, "  "));

  say(`${palette.title(`zae-limiter ${CLIENT_VERSION}`)}: limits at work, in a temporary store`);
  await createProject(repository);
  const entities = await resolved(repository);
  chapter("1. A project with three keys, and which of the stored limits apply");
  const branches = ["", "├─ ", "├─ ", "└─ "];
  await rows(
    ["entity", `limits on ${RESOURCE}`, "stored for"],
    entities.map(({ entityId, limits, source }, at) => {
      return [`${branches[at]}${entityId}`, limits.join("  "), STORED_FOR[source]];
    }),
  );
  say(`  A call of a key consumes from ${PROJECT} too: all limits of both, or none.`);

  chapter(`2. ${TRAFFIC_MS / 1000} seconds of a gateway: consume an estimate, call, correct it`);
  await stage.pause(INTRODUCTION_MS);
  const { calls, statuses } = await watchTraffic(stage);

  chapter("3. What happened: tokens as estimated, and as used");
  const total = countsOf(calls);
  const numbers = (counts: Counts) => Object.values(counts).map(withThousands);
  await rows(
    ["key", ...Object.keys(total).map(right)],
    [
      ...KEYS.map((key) => [key, ...numbers(countsOf(calls, key))]),
      ["together", ...numbers(total)],
    ],
  );
  const [off, done] =
    total.used < total.estimated
      ? [`${withThousands(total.estimated - total.used)} too high`, "refunded"]
      : [`${withThousands(total.used - total.estimated)} too low`, "consumed"];
  say(`  The estimates were ${off}; the corrections have ${done} that.`);

  chapter("4. What the store has counted and written down, read back from it");
  const query = { resource: RESOURCE, window: "hourly" } as const;
  const { snapshots } = await repository.usage.snapshots(query);
  const order: readonly string[] = [...KEYS, PROJECT];
  const usage = [...snapshots].sort(
    (a, b) => order.indexOf(a.entityId) - order.indexOf(b.entityId),
  );
  await rows(
    ["entity", ...["requests", "tokens", "hour"].map(right)],
    usage.map(({ entityId, counters: { rpm = 0, tpm = 0 }, windowStart }) => {
      return [entityId, withThousands(rpm), withThousands(tpm), windowStart];
    }),
  );
  say("");
  const audit = await repository.audit.list("batch");
  await rows(
    ["audit log of batch", "by", "at"],
    audit.map(({ action, principal = "", timestamp }) => [action, principal, timestamp]),
  );

  chapter("5. What to try next, on a file in this folder");
  for (const [command, does] of nextSteps(terminal.env)) {
    say(`  ${palette.faint(`# ${does}`)}\n  ${command}`);
  }
  return { entities, calls, total, usage, statuses };
}

/** Runs the traffic and shows it: bars that are drawn over on a terminal, else lines. */
async function watchTraffic({ terminal, repository, random, pause, moveTo }: Stage) {
  const { palette, out, isTerminal } = terminal;
  const limiter = new RateLimiter(repository);
  const drawing = new Drawing(terminal);
  const calls: CallReport[] = [];
  let news: readonly string[] = [];
  const print = (atMs: number, name: string, text: string) => {
    const at = palette.faint(`${(atMs / 1000).toFixed(1).padStart(4)} s`);
    const line = `  ${at}  ${name.padEnd(7)}${text}`;
    if (isTerminal) news = [...news, line].slice(-NEWS_MAX);
    else out(`${line}\n`);
  };
  const traffic = new Traffic(limiter, random, moveTo, (call) => {
    calls.push(call);
    const outcome = palette[PAINTS[call.outcome]](call.outcome.padEnd(8));
    print(call.atMs, call.entityId, `${outcome}  ${callText(call)}`);
  });
  traffic.at(RAISE_MS, async () => {
    const { limits } = repository;
    await limits.setEntity("batch", ["rpm:60", "tpm:24000/min:6000"], { principal: "ops" });
    const raised = await limits.getEntity("batch");
    print(RAISE_MS, "ops", `gives batch ${raised.join("  ")}, at once`);
  });
  const frameMs = isTerminal ? FRAME_MS.terminal : FRAME_MS.plain;
  try {
    for (let atMs = TICK_MS; atMs <= TRAFFIC_MS; atMs += TICK_MS) {
      await pause(TICK_MS);
      await traffic.until(atMs);
      if (atMs % frameMs !== 0) continue;
      const lines = picture(terminal, atMs, await statusesOf(limiter), calls);
      if (isTerminal) {
        const room = Math.max(0, (terminal.rows ?? Number.POSITIVE_INFINITY) - lines.length - 2);
        drawing.draw([...lines, ...(room === 0 ? [] : ["", ...news.slice(-room)]), ""].join("\n"));
      } else out(["", ...lines, ...(atMs < TRAFFIC_MS ? [""] : []), ""].join("\n"));
    }
  } finally {
    drawing.leave();
  }
  return { calls, statuses: await statusesOf(limiter) };
}

function picture(
  { palette, columns, isTerminal }: Terminal,
  atMs: number,
  statuses: readonly LimitStatus[],
  calls: readonly CallReport[],
): string[] {
  const [at, end] = [atMs / 1000, TRAFFIC_MS / 1000];
  const time = isTerminal ? `${at.toFixed(1).padStart(4)} of ${end} s` : `${at} s`;
  const heading = (entityId: string) => {
    const isProject = entityId === PROJECT;
    const { answered, refused, failed } = countsOf(calls, isProject ? undefined : entityId);
    const counts = [
      `${answered} answered`,
      ...(refused === 0 ? [] : [palette.bad(`${refused} refused`)]),
      ...(failed === 0 ? [] : [palette.warning(`${failed} failed`)]),
    ];
    const name = isProject ? `${entityId}, the parent of all` : entityId;
    return `${palette.title(name)}: ${counts.join(", ")}`;
  };
  const drawn = bars(statuses, { palette, columns: columns - 2, heading });
  return [palette.faint(`${RESOURCE}, what is left after ${time}`), ...drawn.split("\n")].map(
    (line) => `  ${line}`,
  );
}

function callText({ outcome, estimated, used, retryAfterSeconds, lacking }: CallReport): string {
  if (outcome === "failed") return `the model failed; all ${estimated} are refunded`;
  if (lacking !== undefined) {
    const { entityId, limitName, available, requested } = lacking;
    const has = `${entityId} has ${withThousands(available)} ${limitName}`;
    const again = Number.isFinite(retryAfterSeconds)
      ? `; again in ${duration(retryAfterSeconds)}`
      : ", which never fits";
    return `${has}, asked for ${withThousands(requested)}${again}`;
  }
  const line = `estimated ${estimated}, used ${used}`;
  if (used === estimated) return line;
  return used > estimated
    ? `${line}: ${used - estimated} more are consumed`
    : `${line}: ${estimated - used} are refunded`;
}

type Counts = ReturnType<typeof countsOf>;

/** Counts the calls of a key, or of all; tokens are estimated of the calls that were answered. */
function countsOf(calls: readonly CallReport[], key?: string) {
  const counts = { answered: 0, refused: 0, failed: 0, estimated: 0, used: 0 };
  for (const { entityId, outcome, estimated, used } of calls) {
    if (key !== undefined && entityId !== key) continue;
    counts[outcome] += 1;
    if (outcome === "answered") counts.estimated += estimated;
    counts.used += used;
  }
  return counts;
}

/** Returns the limits that apply to the project and to its keys. */
async function resolved({ limits }: Repository) {
  const found = [PROJECT, ...KEYS].map(async (entityId) => {
    const applying = await limits.resolve(entityId, RESOURCE);
    const parentId = entityId === PROJECT ? undefined : PROJECT;
    return applying === undefined ? [] : [{ entityId, parentId, ...applying }];
  });
  return (await Promise.all(found)).flat();
}

/** Returns the limits of the project, then those of its keys. */
async function statusesOf(limiter: RateLimiter): Promise<LimitStatus[]> {
  const ofKeys = await Promise.all(
    KEYS.map((entityId) => limiter.status({ entityId, resource: RESOURCE })),
  );
  const own = ofKeys.flatMap((statuses, at) => statuses.filter((s) => s.entityId === KEYS[at]));
  // Each key shows the limits of the project again.
  const project = (ofKeys[0] ?? []).filter(({ entityId }) => entityId === PROJECT);
  return [...project, ...own];
}
