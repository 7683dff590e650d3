/**
 * Gives back the slots of processes that are dead, where a call is refused for slots, or overdraws
 * soft ones: it reads the records of the holders that the shards name, at most once a second for a
 * bucket.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import { type Deadline, isRecent } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import type { HolderRecords } from "../../../records/holders.ts";
import { bucketId } from "../../../records/keys.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { encodeMark, entryAttribute, freeOf, NO_MARKS } from "../../../records/slot-attributes.ts";
import type { Test } from "../../../storage/item-store.ts";
import type { ConsumeResult } from "../../bucket-consumer.ts";
import type { Leg, LegOutcome } from "../../leg.ts";
import { lacksSlots, overdrawsSlots } from "../../slots/slot-amounts.ts";
import { type HolderTimes, holderOf, isOver } from "../../slots/slot-holder.ts";
import { decoded, type SeenBucket } from "../plan/seen-bucket.ts";
import type { BucketStates } from "../state/bucket-states.ts";

const SEARCH_MS = 1000;
const REMEMBERED_MAX = 10_000;

export interface DeadHoldersOptions {
  readonly records: Pick<HolderRecords, "read">;
  /** This process, which is alive. */
  readonly holder: { readonly current: string | undefined; readonly times: HolderTimes };
}

export class DeadHolders {
  readonly #context: RecordContext;
  readonly #states: BucketStates;
  readonly #options: DeadHoldersOptions;
  readonly #searchedMs = boundedMap<number>(REMEMBERED_MAX);
  /** Until when a holder is alive, whatever becomes of it. */
  readonly #aliveUntilMs = boundedMap<number>(REMEMBERED_MAX);

  constructor(context: RecordContext, states: BucketStates, options: DeadHoldersOptions) {
    this.#context = context;
    this.#states = states;
    this.#options = options;
  }

  /** Consumes again where a call was refused for slots, and dead holders had some. */
  async orAgain(
    legs: readonly Leg[],
    deadline: Deadline,
    consume: () => ConsumeResult | Promise<ConsumeResult>,
  ): Promise<ConsumeResult> {
    const result = await consume();
    if (result.outcome === "granted") {
      const over = legs.filter((leg, at) => overdraws(leg, result.legs[at]));
      // Soft slots are never refused, so grants search, too. The grant holds if that fails.
      if (over.length > 0) await this.#reclaim(over, deadline).catch(() => false);
    }
    if (result.outcome !== "refused") return result;
    const lacking = legs.filter((leg, at) => lacksSlots(leg, result.balancesMilli[at] ?? []));
    return (await this.#reclaim(lacking, deadline)) ? consume() : result;
  }

  /** Gives back slots of dead holders. The answer is certain: a failing store changes nothing. */
  async #reclaim(legs: readonly Leg[], deadline: Deadline): Promise<boolean> {
    if (deadline.isOver) return false;
    try {
      let isFreed = false;
      for (const leg of legs) if (await this.#reclaimIn(leg, deadline)) isFreed = true;
      return isFreed;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return false;
    }
  }

  async #reclaimIn(leg: Leg, deadline: Deadline): Promise<boolean> {
    const nowMs = this.#context.clock();
    const id = bucketId(leg);
    if (isRecent(this.#searchedMs.get(id), nowMs, SEARCH_MS)) return false;
    const shards = Array.from({ length: this.#states.countOf(leg) ?? 1 }, (_, shard) =>
      this.#states.of(leg, shard),
    ).flatMap((state) => state?.bucket ?? []);
    const dead = await this.#deadAmong(new Set(shards.flatMap(holdersIn)), deadline);
    if (dead.size === 0) this.#searchedMs.set(id, nowMs);
    const freed = await Promise.all(
      shards.map((shard) => this.#reclaimFrom(shard, dead, deadline)),
    );
    return freed.includes(true);
  }

  async #deadAmong(
    ids: ReadonlySet<string>,
    { timeoutMs }: Deadline,
  ): Promise<ReadonlySet<string>> {
    const { records, holder } = this.#options;
    const { clock } = this.#context;
    const asked = [...ids].filter((id) => {
      return id !== holder.current && clock() >= (this.#aliveUntilMs.get(id) ?? 0);
    });
    if (asked.length === 0) return new Set();
    const found = await records.read(asked, timeoutMs);
    const nowMs = clock();
    return new Set(
      asked.filter((id, at) => {
        const record = found[at];
        if (isOver(record, holder.times, nowMs)) return true;
        this.#aliveUntilMs.set(id, (record?.untilMs ?? 0) + holder.times.graceMs);
        return false;
      }),
    );
  }

  /** Gives back the entries of dead holders in a shard, if they are as they were seen. */
  async #reclaimFrom(
    shard: SeenBucket,
    dead: ReadonlySet<string>,
    { timeoutMs }: Deadline,
  ): Promise<boolean> {
    const add: Record<string, number> = {};
    const remove: string[] = [];
    const condition: Test[] = [];
    for (const [name, { marks }] of shard.limits) {
      for (const [entry, mark] of marks ?? NO_MARKS) {
        if (!dead.has(holderOf(entry))) continue;
        const attribute = entryAttribute(name, entry);
        add[freeOf(name)] = (add[freeOf(name)] ?? 0) + mark.count;
        remove.push(attribute);
        condition.push({ is: "=", name: attribute, value: encodeMark(mark) });
      }
    }
    if (remove.length === 0) return false;
    const { store, clock } = this.#context;
    const key = this.#states.keyOf(shard, shard.shard);
    const observe = this.#states.shards.observe(key.PK);
    const { ok, item } = await store.update(key, { add, remove }, condition, { timeoutMs });
    observe(decoded(item), clock());
    return ok;
  }
}

function overdraws(leg: Leg, outcome: LegOutcome | undefined): boolean {
  return outcome !== undefined && overdrawsSlots(leg, outcome.balancesMilli);
}

function holdersIn({ limits }: SeenBucket): readonly string[] {
  return [...limits.values()].flatMap(({ marks }) =>
    [...(marks ?? NO_MARKS).keys()].map((entry) => holderOf(entry)),
  );
}
