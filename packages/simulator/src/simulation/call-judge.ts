/** Whether the answer of a call is right, by what the checkers know. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import type { Wanted } from "../checkers/refusals.ts";
import type { Deciding } from "../checkers/switch-history.ts";
import { Violation } from "../checkers/violation.ts";
import { type Caller, type PlannedCall, partsOf, type Tokens } from "./planned-call.ts";
import { RESOURCE } from "./population.ts";
import type { World } from "./world.ts";

/** A refusal may go by what was known so long ago. */
const KNOWLEDGE_MS = 1000;

export class CallJudge {
  readonly #world: World;
  readonly #caller: Caller;
  readonly #call: PlannedCall;
  readonly #startMs: number;
  /** Ends its asking. */
  #stop: (() => void) | undefined;

  /** Made when the call begins. */
  constructor(world: World, caller: Caller, call: PlannedCall) {
    this.#world = world;
    this.#caller = caller;
    this.#call = call;
    this.#startMs = world.time.nowMs;
  }

  /**
   * Records that the call asks from now on, also its ancestors. Call the result when it is decided:
   * until then later calls of the same process are queued behind it.
   */
  asks(): () => void {
    const { deed } = this.#call;
    const { refusals, time } = this.#world;
    const wanted = this.#wanted(Object.keys);
    const mayWait = deed === "wait";
    const stop = refusals.asks(this.#caller.id, wanted, mayWait, () => time.nowMs);
    this.#stop = stop;
    let isOver = false;
    return () => {
      if (!isOver) stop();
      isOver = true;
    };
  }

  /** Checks that a grant consumed from the buckets that links and switches allow. */
  grant(lease: Lease): void {
    const { links, switches } = this.#world;
    if (lease.degraded) return;
    const { statuses } = lease;
    this.#judgeTotals(statuses);
    if (!links.isEmpty) {
      for (const entities of entitiesByResource(statuses)) {
        links.judge(this.#subject, this.#call.entityId, entities, this.#startMs);
      }
    }
    if (switches.isEmpty) return;
    for (const bucket of distinct(statuses)) {
      const possible = switches.possible(bucket.entityId, bucket.resource, this.#deciding);
      if (possible.has("enabled") || possible.has("bypass")) continue;
      const detail = `consumed from ${bucket.entityId} ${bucket.resource}, which is switched off`;
      throw new Violation("switches", this.#subject, detail);
    }
    for (const { entityId, resource } of partsOf(this.#call, RESOURCE)) {
      const found = lease.of(resource, { entityId }).bypassed ? "bypass" : "enabled";
      switches.judge(this.#subject, { entityId, resource }, found, this.#deciding);
    }
  }

  /** Checks that the switch that refuses a call is set. */
  disabled({ entityId, resource }: ResourceDisabled): void {
    const { switches, links } = this.#world;
    try {
      switches.judge(this.#subject, { entityId, resource }, "disabled", this.#deciding);
      if (links.isEmpty) return;
      links.judgeRefusal(this.#subject, this.#call.entityId, [entityId], this.#startMs);
    } catch (error) {
      this.#world.fail(error);
    }
  }

  /** Returns what is to be counted. */
  refusal(violations: readonly LimitStatus[]): string {
    const { refusals, time, judgesRefusals, log, links, switches } = this.#world;
    if (violations.length === 0) {
      throw new Violation("leases", this.#subject, "refused without a reason");
    }
    if (!links.isEmpty) {
      const named = violations.map(({ entityId }) => entityId);
      links.judgeRefusal(this.#subject, this.#call.entityId, named, this.#startMs);
    }
    if (!switches.isEmpty) {
      const deciding = { ...this.#deciding, sinceMs: this.#startMs - KNOWLEDGE_MS };
      for (const bucket of distinct(violations)) {
        switches.judge(this.#subject, bucket, "enabled", deciding);
      }
    }
    // The parameters of a bucket follow those of a call, for other calls too.
    if (this.#call.limits !== undefined) return "refused";
    const judged = violations.filter(({ kind }) => kind !== "concurrency");
    for (const status of judged) this.#judgeLimit(status);
    // One limit with too little makes a refusal right, and slots are not judged: what is free of
    // them depends on which processes are known to be dead. Where a refusal names slots, a rate may
    // be named for less, such as a write of this process that may or may not have arrived: the
    // slots refuse the call, and the other limits are named as they were last known.
    if (judged.length < violations.length) return "refused for slots";
    const named = judged.map(({ entityId, resource, limitName, requested, limit }) => {
      const [amountMilli, capacityMilli] = [requested * 1000, limit.capacity * 1000];
      return { bucket: `${entityId} ${resource}`, limitName, amountMilli, capacityMilli };
    });
    const { nowMs } = time;
    const reason = refusals.whyWrong(this.#caller.id, named, this.#startMs, nowMs, this.#stop);
    if (reason === undefined) return "refused";
    log.add(`call ${this.#call.number} is refused wrongly: ${reason}`);
    if (judgesRefusals) throw new Violation("refusals", this.#subject, reason);
    return "refused wrongly";
  }

  /** Checks that a refusal uses limits that are stored, or may still be cached. */
  #judgeLimit({ entityId, resource, limitName, limit }: LimitStatus): void {
    const { configs, time } = this.#world;
    const { capacity, refillAmount, refillPeriodSeconds } = limit;
    const rate = {
      capacity: capacity * 1000,
      refill: refillAmount * 1000,
      period: refillPeriodSeconds * 1000,
    };
    const window = [this.#startMs - KNOWLEDGE_MS, time.nowMs] as const;
    if (configs.mayApply(entityId, resource, limitName, rate, window, this.#parentsOf(entityId))) {
      return;
    }
    const detail = `refused by ${limit} of ${entityId} ${resource}, which is not stored`;
    throw new Violation("refusals", this.#subject, detail);
  }

  /** Lists the parents whose limits for children a process may have known in the call. */
  #parentsOf(entityId: string): readonly (string | undefined)[] {
    const { links, configs } = this.#world;
    return links.parentsSince(entityId, this.#startMs - configs.knownMs);
  }

  /**
   * Checks that a wait ends soon after there is enough. Requests that fail take longer, and a
   * refund without an answer may have been made without the knowledge of its process.
   */
  wait(): void {
    const { refusals, time, judgesRefusals, links, isOnly, disturbedAtMs } = this.#world;
    if (disturbedAtMs >= this.#startMs - KNOWLEDGE_MS) return;
    // A call that cascades may wait for an ancestor, and another process wakes up nothing here.
    const isAlone = this.#call.ancestors.length === 0 && links.isEmpty && isOnly;
    if (!judgesRefusals || !isAlone) return;
    const wanted = this.#wanted(() => this.#call.totals);
    if (!refusals.isLate(this.#caller.id, wanted, this.#startMs, time.nowMs)) return;
    const detail = "waited on although there was enough for it";
    throw new Violation("refusals", this.#subject, detail);
  }

  get #subject(): string {
    return `call ${this.#call.number}`;
  }

  get #deciding(): Deciding {
    const { time } = this.#world;
    return { process: this.#caller.id, sinceMs: this.#startMs, nowMs: time.nowMs };
  }

  /**
   * Lists what the call asks of all buckets; where several parts reach one, their sum. `totalsOf`:
   * the limits that a total may have; later ones may have been stored for it.
   */
  #wanted(totalsOf: (consume: Tokens) => readonly string[]): Wanted[] {
    const wanted = new Map<string, Wanted>();
    for (const { resource, consume, entities } of partsOf(this.#call, RESOURCE)) {
      for (const [limitName, amount] of Object.entries(consume)) {
        const counts = this.#call.totals.length > 0;
        const isTotal = counts && totalsOf(consume).includes(limitName);
        const buckets = entities.flatMap((entityId) =>
          [resource, ...(isTotal ? [TOTAL] : [])].map((each) => `${entityId} ${each}`),
        );
        for (const bucket of buckets) {
          const before = wanted.get(`${bucket} ${limitName}`)?.amountMilli ?? 0;
          const amountMilli = before + amount * 1000;
          wanted.set(`${bucket} ${limitName}`, { bucket, limitName, amountMilli });
        }
      }
    }
    return [...wanted.values()];
  }

  /** Checks that a grant consumed from the total of each entity what its parts consume together. */
  #judgeTotals(statuses: readonly LimitStatus[]): void {
    if (this.#call.totals.length === 0) return;
    const parts = partsOf(this.#call, RESOURCE);
    for (const entityId of new Set(parts.flatMap(({ entities }) => entities))) {
      const reaching = parts.filter(({ entities }) => entities.includes(entityId));
      const found = statuses.filter(
        (status) => status.entityId === entityId && status.resource === TOTAL,
      );
      if (found.length === 0) {
        throw new Violation(
          "leases",
          this.#subject,
          `consumed nothing from the total of ${entityId}`,
        );
      }
      for (const { limitName, requested } of found) {
        const expected = reaching.reduce((sum, { consume }) => sum + (consume[limitName] ?? 0), 0);
        if (requested === expected) continue;
        const detail = `consumed ${requested} of "${limitName}" from the total of ${entityId}, expected ${expected}`;
        throw new Violation("leases", this.#subject, detail);
      }
    }
  }
}

/** Groups the entities that statuses name by resource. */
function entitiesByResource(statuses: readonly LimitStatus[]): Iterable<ReadonlySet<string>> {
  const byResource = new Map<string, Set<string>>();
  for (const { entityId, resource } of statuses) {
    byResource.set(resource, (byResource.get(resource) ?? new Set()).add(entityId));
  }
  return byResource.values();
}

/** Returns the buckets that statuses name, each once. */
function distinct(statuses: readonly LimitStatus[]): readonly LimitStatus[] {
  const seen = new Set<string>();
  return statuses.filter(({ entityId, resource }) => {
    const name = `${entityId} ${resource}`;
    if (seen.has(name)) return false;
    seen.add(name);
    return true;
  });
}
