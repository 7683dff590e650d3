/**
 * One race: clients on one store, actors that all start at once, and what must be true after it.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { RefundWarning } from "@zae-limiter/limiter/buckets/bucket-warning.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import type { Scheduler } from "fast-check";
import {
  type Actor,
  acquire,
  ENTITIES,
  isExpected,
  RESOURCE,
  type Report,
  type Tokens,
} from "./actors.ts";
import { Ledger, slot } from "./ledger.ts";
import { ScheduledStore } from "./scheduled-store.ts";
import { type Fault, World } from "./world.ts";

/** More than any race makes. */
const SHARDS = 64;

export interface Race {
  readonly clients: number;
  readonly limits: readonly string[];
  readonly parentLimits: readonly string[];
  readonly actors: readonly Actor[];
  /** After everything is settled and `idleMs` have passed, with a sweep of expired items. */
  readonly laterActors: readonly Actor[];
  readonly idleMs: number;
  /** Faults with the numbers of their calls. */
  readonly faults: readonly (readonly [number, Fault])[];
}

export class RaceRun {
  readonly #race: Race;
  readonly #world: World;
  readonly #items: MemoryItemStore;
  readonly #store: ScheduledStore;
  readonly #ledger: Ledger;
  readonly #limiters: RateLimiter[] = [];
  readonly #warnings: RefundWarning[] = [];
  readonly #reports = new Map<number, Report>();
  readonly #failures: unknown[] = [];
  #begun = 0;
  #ended = 0;

  constructor(race: Race, scheduler: Scheduler) {
    this.#race = race;
    this.#world = new World(scheduler, new Map(race.faults));
    const ticks = [...race.actors, ...race.laterActors].map((actor) =>
      actor.do === "tick" ? actor.ms : 0,
    );
    const spreadMs = ticks.reduce((sum, ms) => sum + ms, 0);
    this.#items = new MemoryItemStore({ clock: () => 0 });
    this.#ledger = new Ledger(this.#world, spreadMs);
    this.#store = new ScheduledStore(this.#items, this.#world, (landed) => {
      try {
        this.#ledger.onLanded(landed);
      } catch (error) {
        this.#failures.push(error);
      }
    });
  }

  async run(): Promise<void> {
    await this.#prepare();
    await this.#start(this.#race.actors);
    if (this.#race.laterActors.length > 0) {
      this.#world.nowMs += this.#race.idleMs;
      void this.#sweep();
      await this.#start(this.#race.laterActors);
    }
    this.#judge();
  }

  /** How many were granted what they asked for. */
  get granted(): number {
    return [...this.#reports.values()].filter(({ outcome }) => outcome === "granted").length;
  }

  async #prepare(): Promise<void> {
    const world = this.#world;
    const { clients, limits, parentLimits } = this.#race;
    const random = lehmer(1);
    for (let client = 0; client < clients; client += 1) {
      const repository = await overTable(this.#store, {
        clock: world.clock,
        timer: world.timer,
        random,
      });
      const onWarning = (warning: { kind: string }) => {
        if (warning.kind === "restore_failed") this.#warnings.push(warning as RefundWarning);
      };
      this.#limiters.push(new RateLimiter(repository, { onWarning }));
    }
    const { entities, limits: stored } = this.#limiter(0).repository;
    await entities.create({ id: "parent" });
    await entities.create({ id: "solo" });
    await entities.create({ id: "child", parentId: "parent", cascade: true });
    await stored.setResource(RESOURCE, limits);
    if (parentLimits.length > 0) {
      await stored.setEntity("parent", parentLimits, { resource: RESOURCE });
    }
    world.racing = true;
  }

  async #start(actors: readonly Actor[]): Promise<void> {
    const first = this.#begun;
    actors.forEach((actor, at) => {
      this.#allowDebt(actor);
      this.#begun += 1;
      void this.#world.actor.run(first + at, () => this.#act(first + at, actor));
    });
    await this.#world.untilIdle();
  }

  async #act(number: number, actor: Actor): Promise<void> {
    const world = this.#world;
    await world.turn(`${actor.do} starts`);
    try {
      switch (actor.do) {
        case "acquire":
          this.#reports.set(number, await acquire(this.#limiter(actor.client), actor, world));
          break;
        case "configure": {
          const { limits } = this.#limiter(actor.client).repository;
          if (actor.entity === undefined) await limits.setResource(RESOURCE, actor.limits);
          else await limits.setEntity(actor.entity, actor.limits, { resource: RESOURCE });
          break;
        }
        case "delete":
          await this.#limiter(actor.client).repository.entities.delete(actor.entity);
          break;
        case "adopt": {
          const { entities } = this.#limiter(actor.client).repository;
          await entities.create({ id: "late", parentId: "parent", cascade: true });
          break;
        }
        case "split": {
          const { namespaceId } = this.#limiter(0).repository;
          const target = { namespaceId, entityId: actor.entity, resource: RESOURCE };
          await splitShard(this.#store, target, actor.shard, world.nowMs, actor.factor);
          break;
        }
        case "merge": {
          const { namespaceId } = this.#limiter(0).repository;
          const target = { namespaceId, entityId: actor.entity, resource: RESOURCE };
          await halveShards(this.#store, target, world.nowMs, lehmer(2));
          break;
        }
        case "tick":
          world.nowMs += actor.ms;
      }
    } catch (error) {
      if (!isExpected(error) && !isRepeatedCreation(error)) this.#failures.push(error);
    }
    this.#ended += 1;
  }

  /** Removes expired items, as the store does by itself at any time. */
  async #sweep(): Promise<void> {
    for (const item of this.#buckets()) {
      await this.#world.turn("sweep");
      const now = this.#items.readNow(item);
      if (typeof now?.ttl !== "number" || now.ttl * 1000 > this.#world.nowMs) continue;
      try {
        this.#ledger.expired(now);
      } catch (error) {
        this.#failures.push(error);
      }
      await this.#items.delete(item);
    }
  }

  #judge(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
    if (this.#ended !== this.#begun) {
      throw new Error(`${this.#begun - this.#ended} of ${this.#begun} actors never ended`);
    }
    this.#ledger.checkAll(this.#buckets());
    this.#ledger.checkPlaces();
    for (const [actor, report] of this.#reports) this.#judgeActor(actor, report);
    this.#judgeRefusals();
  }

  /** Checks that its writes consumed what it was granted and has kept. */
  #judgeActor(actor: number, report: Report): void {
    const { unanswered } = this.#ledger;
    if (unanswered.has(actor) && report.outcome === "granted" && !report.caught) {
      throw new Error(`actor ${actor} was granted without an answer`);
    }
    const taken = this.#ledger.taken.get(actor) ?? new Map<string, number>();
    for (const at of new Set([...taken.keys(), ...report.kept.keys()])) {
      if (this.#ledger.resets.has(at)) continue;
      const found = taken.get(at) ?? 0;
      const kept = report.kept.get(at) ?? 0;
      const uncertain = report.uncertain.get(at) ?? 0;
      const unrestored = this.#unrestored(at);
      const allowed = [kept, kept + uncertain, kept - uncertain];
      if (allowed.some((sum) => found >= sum && found <= sum + unrestored)) continue;
      throw new Error(
        `actor ${actor} (${report.outcome}) took ${found} of ${at}, and should hold ${kept}`,
      );
    }
  }

  /** Amount not refunded according to warnings; it may have been, with the answer lost. */
  #unrestored(at: string): number {
    let sum = 0;
    for (const { entityId, amountsMilli } of this.#warnings) {
      for (const [name, amount] of Object.entries(amountsMilli)) {
        if (slot(entityId, name) === at) sum += amount;
      }
    }
    return sum;
  }

  /** Checks that none is refused when all requests fit together. */
  #judgeRefusals(): void {
    if (!fitsTogether(this.#race)) return;
    for (const [actor, { outcome }] of this.#reports) {
      if (outcome === "refused") throw new Error(`actor ${actor} was refused what would fit`);
    }
  }

  /** Only adjustments go into debt. */
  #allowDebt(actor: Actor): void {
    if (actor.do !== "acquire" || !("deltas" in actor.ending)) return;
    const { debts } = this.#ledger;
    for (const [name, delta] of Object.entries(actor.ending.deltas)) {
      for (const entityId of ENTITIES) {
        const at = slot(entityId, name);
        debts.set(at, (debts.get(at) ?? 0) + Math.max(0, delta) * 1000);
      }
    }
  }

  #buckets(): Item[] {
    const found: Item[] = [];
    const { namespaceId } = this.#limiter(0).repository;
    for (const entityId of ENTITIES) {
      for (let shard = 0; shard < SHARDS; shard += 1) {
        const PK = `${namespaceId}/BUCKET#${entityId}#${RESOURCE}#${shard}`;
        const item = this.#items.readNow({ PK, SK: "#STATE" });
        // A merge leaves a stub, which has no base time.
        if (item?.rf !== undefined) found.push(item);
      }
    }
    return found;
  }

  #limiter(client: number): RateLimiter {
    return this.#limiters[client % this.#limiters.length] as RateLimiter;
  }
}

/** Whether the smallest limits hold all that is ever asked for, and nothing else happens. */
function fitsTogether({ actors, laterActors, limits, parentLimits, faults }: Race): boolean {
  const wanted = new Map<string, number>();
  for (const actor of [...actors, ...laterActors]) {
    if (actor.do === "split" || actor.do === "merge") continue;
    if (actor.do !== "acquire" || actor.limits !== undefined) return false;
    for (const [name, amount] of tokensOf(actor).flatMap((tokens) => Object.entries(tokens))) {
      wanted.set(name, (wanted.get(name) ?? 0) + Math.max(0, amount));
    }
  }
  const fits = (limit: string) => {
    const [name = "", capacity = ""] = limit.split(/[:/]/);
    return (wanted.get(name) ?? 0) <= Number(capacity);
  };
  return faults.length === 0 && [...limits, ...parentLimits].every(fits);
}

function tokensOf({ consume, ending }: Extract<Actor, { do: "acquire" }>): Tokens[] {
  if ("deltas" in ending) return [consume, ending.deltas];
  return ending.do === "more" ? [consume, ending.consume] : [consume];
}

function isRepeatedCreation(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("ZAEL_ENTITY");
}
