/** One run: a world from a seed, calls until the time is over, and what the checkers say. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import type { Usage } from "@zae-limiter/testing/table/usage.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { imageOf, isBucket, type ShardImage } from "../checkers/bucket-image.ts";
import { isStub } from "../checkers/merged-shard.ts";
import { edgeAfter, type QuotaEdges } from "../checkers/quota-edges.ts";
import { refuseGhost } from "../checkers/shape.ts";
import { Violation } from "../checkers/violation.ts";
import { between } from "../draw.ts";
import { CallDrawer } from "./call-drawer.ts";
import { Disturbances } from "./disturbances.ts";
import { Follower } from "./follower.ts";
import type { Parameters, QuotaPeriods } from "./parameters.ts";
import { entitiesOf, entityAt, RESOURCE, resourcesOf } from "./population.ts";
import { shiftOf } from "./quota-worlds.ts";
import { KNOWN_MS, Staff } from "./staff.ts";
import { World } from "./world.ts";

/** Result of one run. */
export interface RunReport {
  readonly parameters: Parameters;
  readonly violation: Violation | undefined;
  /** Hash of the log; equal parameters lead to an equal hash. */
  readonly hash: string;
  readonly events: number;
  readonly calls: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly crashes: number;
  readonly splits: number;
  readonly merges: number;
  readonly shardsMax: number;
  readonly unheardMilli: number;
  /** How many refusals were compared with the ideal bucket, and how many of them were wrong. */
  readonly refusals: { readonly judged: number; readonly wrong: number };
  readonly usage: Usage;
  readonly log: readonly string[];
}

/** After the last call: long enough for every deadline, and for what goes on in the background. */
const QUIET_MS = 60_000;
/** For so long a process may be cut off; its slots are others' after eight seconds. */
const CUT_MS_MAX = 20_000;

export interface RunOptions {
  /** Keep the lines, not only their hash. */
  readonly keepsLog?: boolean;
}

export async function simulate(
  parameters: Parameters,
  options: RunOptions = {},
): Promise<RunReport> {
  return new Simulation(parameters, options.keepsLog === true).run();
}

class Simulation {
  readonly #parameters: Parameters;
  readonly #world: World;
  readonly #staff: Staff;
  readonly #random: Random;
  readonly #follower: Follower;
  readonly #disturbances: Disturbances;
  readonly #calls: CallDrawer;
  #configured = 0;

  constructor(parameters: Parameters, keepsLog: boolean) {
    const { seed, skewMs, latencyMs, faults, isHealthy, judgesRefusals, quotas } = parameters;
    this.#parameters = parameters;
    const time = new VirtualTime();
    this.#world = new World({
      time,
      keepsLog,
      skewMs: 2 * skewMs,
      knownMs: KNOWN_MS,
      isOnly: parameters.processes === 1 && parameters.crashesPerMinute === 0,
      isHealthy,
      judgesRefusals,
      edges: quotas && edgesOf(quotas),
      table: {
        seed,
        faults,
        latency: { medianMs: latencyMs },
      },
    });
    this.#random = seededRandom(seed, "calls");
    this.#calls = new CallDrawer(parameters, this.#random);
    this.#staff = new Staff(this.#world, seededRandom(seed, "staff"), skewMs, quotas);
    this.#follower = new Follower(this.#world);
    this.#disturbances = new Disturbances(this.#world, this.#staff, parameters, (fields) =>
      this.#calls.draw(fields),
    );
  }

  async run(): Promise<RunReport> {
    const { time, failed } = this.#world;
    try {
      await time.until(this.#prepare());
      this.#world.table.faults = this.#parameters.faults;
      this.#world.table.writeUnitsPerSecond = this.#parameters.writeUnitsPerSecond;
      const over = this.#live();
      await time.until(Promise.race([over, failed]));
      if (this.#world.violation === undefined) await this.#end();
    } catch (error) {
      this.#world.fail(error);
    }
    return this.#report();
  }

  /** Entities, limits and processes; nothing goes wrong yet. */
  async #prepare(): Promise<void> {
    this.#world.table.faults = {};
    const { processes, limits, slots, totals } = this.#parameters;
    await this.#staff.hire();
    const { repository } = this.#staff.first.limiter;
    this.#follower.start(this.#staff.first.process);
    if (!this.#parameters.latecomers) {
      for (const entity of entitiesOf(this.#parameters)) {
        await repository.entities.create(entity);
        if (entity.parentId !== undefined) this.#world.links.start(entity.id, entity.parentId);
      }
    }
    for (const resource of resourcesOf(this.#parameters)) {
      await repository.limits.setResource(resource, this.#complete([...limits, ...slots]));
    }
    if (totals.length > 0) await repository.limits.setResource(TOTAL, this.#complete(totals));
    for (let hired = 1; hired < processes; hired += 1) await this.#staff.hire();
    const { latecomers, operators } = this.#parameters;
    if (latecomers || operators.includes("move")) await this.#useAll();
  }

  /** Returns limits with their windows and with what their quotas carry, which have no text. */
  #complete(limits: readonly string[]): Limit[] {
    const { windows } = this.#parameters;
    const { carry } = this.#parameters.quotas ?? {};
    return limits.map((text) => {
      const limit = Limit.parse(text);
      const scheduled = windows[limit.name];
      if (scheduled !== undefined) return limit.withSchedule(scheduled);
      const { quota, ...json } = limit.toJSON();
      if (quota === undefined || carry === undefined) return limit;
      return Limit.fromJSON({ ...json, quota: { ...quota, ...carry } });
    });
  }

  /** Creates every bucket before links change: a bucket created meanwhile learns its link later. */
  async #useAll(): Promise<void> {
    const { time } = this.#world;
    for (let position = 0; position < this.#parameters.entities; position += 1) {
      this.#staff.start(this.#calls.draw({ entityId: entityAt(position), deed: "commit" }));
    }
    while (this.#staff.underWay.length > 0) await time.timer.sleep(1);
  }

  /** Calls, crashes and changes of limits, until the time is over. */
  async #live(): Promise<void> {
    const { time } = this.#world;
    const { minutes, crashesPerMinute, laterLimits, silenceMs, silenceIsExtra } = this.#parameters;
    const { cutsPerMinute } = this.#parameters;
    let endMs = time.nowMs + minutes * 60_000;
    const crashes = seededRandom(this.#parameters.seed, "crashes");
    this.#repeat(
      endMs,
      () => drawPause(crashes, crashesPerMinute / 60),
      () => this.#staff.crash(),
    );
    const cuts = seededRandom(this.#parameters.seed, "cuts");
    this.#repeat(
      endMs,
      () => drawPause(cuts, cutsPerMinute / 60),
      () => this.#staff.cutOff(cuts() * CUT_MS_MAX),
    );
    const configures = seededRandom(this.#parameters.seed, "configures");
    const pauseMs = (minutes * 60_000) / (laterLimits.length + 1);
    this.#repeat(
      endMs,
      () => (laterLimits.length === 0 ? undefined : pauseMs * (0.5 + configures())),
      () => this.#configure(),
    );
    this.#disturbances.start(endMs);
    let busyUntilMs = time.nowMs + (silenceMs === 0 ? Number.POSITIVE_INFINITY : 5000);
    while (time.nowMs < endMs) {
      await time.timer.sleep(drawPause(this.#random, this.#parameters.callsPerSecond) ?? 0);
      if (time.nowMs > busyUntilMs) {
        const silentMs = this.#untilBurstMs();
        await time.timer.sleep(silentMs);
        if (silenceIsExtra) endMs += silentMs;
        const [least, more] = this.#parameters.quotas === undefined ? [1000, 9000] : [2000, 2000];
        busyUntilMs = time.nowMs + least + this.#random() * more;
        if (!silenceIsExtra && silenceMs > 60_000 && this.#random() < 0.3) return;
      }
      this.#staff.start(this.#calls.draw());
    }
  }

  /** Returns how long the silence lasts: where there are quotas, until shortly before an edge. */
  #untilBurstMs(): number {
    const { silenceMs, quotas } = this.#parameters;
    if (quotas === undefined) return silenceMs;
    const { nowMs } = this.#world.time;
    const process = between(this.#random, 0, quotas.shiftsMs.length - 1);
    const edgeMs = edgeAfter(edgesOf(quotas), process, nowMs + silenceMs * this.#random());
    this.#planEdge(edgeMs - nowMs);
    return Math.max(0, edgeMs - nowMs - this.#random() * 2000);
  }

  /** Lets calls begin in the last millisecond before an edge, and in the first one after it. */
  #planEdge(afterMs: number): void {
    const { time } = this.#world;
    // In the middle of a millisecond, whatever the addition of times rounds to.
    for (const ms of [-0.5, 0.5]) {
      time.after(afterMs + ms, () => {
        for (let started = 0; started < 3; started += 1) this.#staff.start(this.#calls.draw());
      });
    }
  }

  #repeat(endMs: number, pause: () => number | undefined, act: () => void): void {
    const { time } = this.#world;
    const pauseMs = pause();
    if (pauseMs === undefined || time.nowMs + pauseMs > endMs) return;
    time.after(pauseMs, () => {
      act();
      this.#repeat(endMs, pause, act);
    });
  }

  /** Stores other limits, once; a failure is not repeated. */
  #configure(): void {
    const { laterLimits, deletions, entities, totals } = this.#parameters;
    const limits = laterLimits[this.#configured % laterLimits.length] as readonly string[];
    this.#configured += 1;
    if (this.#staff.size === 0) return;
    const { repository } = this.#staff.first.limiter;
    const entityId = entityAt(between(this.#random, 0, entities - 1));
    this.#world.log.add(`configures ${limits.join(" ")}`);
    const resource = totals.length > 0 && this.#random() < 0.5 ? TOTAL : RESOURCE;
    const work =
      deletions && this.#random() < 0.3
        ? repository.entities.delete(entityId)
        : this.#random() < 0.5
          ? repository.limits.setResource(resource, [...limits])
          : this.#configureEntity(repository, entityId, resource, limits);
    Promise.resolve(work).catch((error: unknown) => {
      if (isRefusal(error)) this.#world.log.add("configures without effect");
      else this.#world.fail(error);
    });
  }

  /** Stores limits of an entity, or for its children, or deletes those for its children. */
  #configureEntity(
    { limits }: Repository,
    entityId: string,
    resource: string,
    wanted: readonly string[],
  ): Promise<void> {
    const random = this.#random;
    const isForChildren = this.#parameters.children && random() < 0.8;
    if (!isForChildren) return limits.setEntity(entityId, [...wanted], { resource });
    const options = random() < 0.4 && resource !== TOTAL ? {} : { resource };
    if (random() < 0.3) return limits.deleteChildren(entityId, options);
    return limits.setChildren(entityId, [...wanted], options);
  }

  /** Waits for the end of all work, and then closes the books. */
  async #end(): Promise<void> {
    const { time, books, table } = this.#world;
    table.faults = {};
    table.writeUnitsPerSecond = 1000;
    await time.pass(QUIET_MS);
    const [waiting] = this.#staff.underWay;
    if (waiting !== undefined) {
      const subject = `call ${waiting.call.number} (${waiting.call.deed})`;
      throw new Violation("patience", subject, `has no answer ${QUIET_MS} ms after the last call`);
    }
    if (this.#world.violation !== undefined) return;
    const images = await this.#images();
    books.close(images);
    this.#world.slotBooks.close(await this.#items());
    this.#follower.compare();
  }

  async #images(): Promise<ShardImage[]> {
    return (await this.#items()).flatMap((item) => {
      refuseGhost(item);
      return imageOf(item) ?? [];
    });
  }

  /** Returns the items of all buckets. */
  async #items(): Promise<Item[]> {
    const { namespaceId } = this.#staff.first.limiter.repository;
    const items: Item[] = [];
    for await (const item of this.#world.table.items(namespaceId)) {
      if (isBucket(item) && !isStub(item)) items.push(item);
    }
    return items;
  }

  #report(): RunReport {
    const { violation, log, time, shape, books, table, refusals } = this.#world;
    return {
      parameters: this.#parameters,
      violation,
      hash: log.hash,
      events: time.events,
      calls: this.#staff.calls,
      outcomes: Object.fromEntries([...this.#staff.outcomes].sort()),
      crashes: this.#staff.crashes,
      splits: shape.splits,
      merges: shape.merges,
      shardsMax: shape.shardsMax,
      unheardMilli: books.unheardMilli,
      refusals: { judged: refusals.judged, wrong: refusals.wrong },
      usage: table.usage,
      log: log.lines,
    };
  }
}

function edgesOf({ lengthMs, shiftsMs }: QuotaPeriods): QuotaEdges {
  return { lengthMs, shiftOf: (process) => shiftOf(shiftsMs, process) };
}

/** Milliseconds until the next of `perSecond` independent events; never, when there are none. */
function drawPause(random: Random, perSecond: number): number | undefined {
  return perSecond <= 0 ? undefined : (-Math.log(1 - random()) * 1000) / perSecond;
}

function isRefusal(error: unknown): boolean {
  return (
    error instanceof RateLimiterUnavailable ||
    (error instanceof Error && "code" in error && String(error.code).startsWith("ZAEL_ENTITY"))
  );
}
