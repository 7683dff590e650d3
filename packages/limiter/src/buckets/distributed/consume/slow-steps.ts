/** The steps of a group that a warm consume of one shard does not need. */

import { boundedMap } from "../../../base/bounded-map.ts";
import { type Clock, isRecent } from "../../../base/time.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { type BucketName, bucketId } from "../../../records/keys.ts";
import { sumOf } from "../../leg.ts";
import { movesSlots } from "../../slots/slot-amounts.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";
import { RepairedCounts } from "../shards/announced-shards.ts";
import type { Splitter } from "../shards/splitter.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { ShardRequests } from "../state/shard-requests.ts";
import type { ConsumeGroup } from "./group.ts";
import type { Step } from "./step.ts";

/**
 * A process probes a throttled shard once in this many milliseconds, however many calls meet it.
 */
const PROBE_MS = 100;
const PROBED_MAX = 10_000;

/** A step that asks the store, other than the write of a consume. */
export type SlowStep = Exclude<Step, { do: "answer" | "pass" | "wait" | "write" }>;

/** Carries out steps, and records their outcome in the group. */
export class SlowSteps {
  readonly #clock: Clock;
  readonly #states: BucketStates;
  readonly #requests: ShardRequests;
  readonly #splitter: Splitter;
  readonly #repaired = new RepairedCounts();
  readonly #probedAtMs = boundedMap<number>(PROBED_MAX);

  constructor(states: BucketStates, requests: ShardRequests, splitter: Splitter) {
    this.#clock = states.clock;
    this.#states = states;
    this.#requests = requests;
    this.#splitter = splitter;
  }

  /** Returns whether announced shards of a bucket were not created yet. */
  needsRepair(name: BucketName, bucket: SeenBucket): boolean {
    return this.#repaired.isDue(name, bucket);
  }

  /** Returns whether this process has just probed a throttled shard. */
  isProbed(name: BucketName, shard: number, nowMs: number): boolean {
    return isRecent(this.#probedAtMs.get(`${bucketId(name)}#${shard}`), nowMs, PROBE_MS);
  }

  perform(step: SlowStep, group: ConsumeGroup): Promise<void> {
    switch (step.do) {
      case "create":
        return this.#create(step, group);
      case "read":
        return this.#read(step, group);
      case "read-all":
        return this.#readAll(step, group);
      case "spread":
        return this.#spread(step, group);
      case "limits":
        return this.#applyLimits(step, group);
      case "create-shard":
        return this.#createShard(step, group);
      case "repair":
        return this.#repair(step, group);
      case "split":
        return this.#split(step, group);
      case "probe":
        return this.#probe(step, group);
    }
  }

  async #read({ shard }: Extract<Step, { do: "read" }>, group: ConsumeGroup): Promise<void> {
    const { bucket } = await this.#requests.read(group.name, shard, group.deadline);
    group.record({ of: "shown", shard, bucket, askedMs: this.#clock() });
  }

  async #readAll({ count }: Extract<Step, { do: "read-all" }>, group: ConsumeGroup): Promise<void> {
    const shards = await this.#requests.readAll(group.name, count, group.deadline);
    group.record({ of: "all", count, shards });
  }

  async #create(
    { members, atMs }: Extract<Step, { do: "create" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    group.markSent(members);
    const { ok, bucket } = await this.#requests.create(group, members, atMs, group.deadline);
    group.clearSent();
    const isConsumed = !movesSlots(group.config, sumOf(members));
    if (ok && bucket !== undefined && isConsumed) {
      return group.record({ of: "created", members, bucket });
    }
    group.record({ of: "shown", shard: 0, bucket, askedMs: this.#clock() });
  }

  async #spread(
    { member, writes, periods }: Extract<Step, { do: "spread" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    group.markSent([member]);
    const made = await this.#requests.spread(group, member, writes, group.deadline);
    group.clearSent();
    group.record(made ? { of: "spread", member, writes: made, periods } : { of: "changed" });
  }

  async #applyLimits(
    { plans, balancesMilli }: Extract<Step, { do: "limits" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    const { name, deadline } = group;
    const states = await Promise.all(
      plans.map(({ shard, plan }) => this.#requests.applyLimits(name, shard, plan, deadline)),
    );
    const [first] = plans;
    const changed = states.find((state) => state !== undefined);
    if (plans.length > 1 || first === undefined) return;
    const { shard } = first;
    if (changed === undefined) return group.record({ of: "limits", shard, balancesMilli });
    const { bucket } = changed;
    group.record({ of: "shown", shard, bucket, askedMs: this.#clock() });
  }

  async #createShard(
    { shard }: Extract<Step, { do: "create-shard" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    await this.#splitter.createShard(group.name, shard, group.deadline);
    group.record({ of: "changed" });
  }

  async #repair({ bucket }: Extract<Step, { do: "repair" }>, group: ConsumeGroup): Promise<void> {
    const { name, deadline } = group;
    this.#repaired.repaired(name, bucket);
    await this.#splitter.repair(name, deadline);
    group.record({ of: "changed" });
  }

  /** Splits a shard where that is allowed. The members were served, and do not depend on it. */
  async #split({ bucket }: Extract<Step, { do: "split" }>, group: ConsumeGroup): Promise<void> {
    try {
      await this.#splitter.splitHot(bucket, "saturated", group.deadline);
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
    }
  }

  /** Reads the throttled shard: another client may have split it already. Splits it otherwise. */
  async #probe(
    { shard, cause }: Extract<Step, { do: "probe" }>,
    group: ConsumeGroup,
  ): Promise<void> {
    const { name, config, deadline } = group;
    this.#probedAtMs.set(`${bucketId(name)}#${shard}`, this.#clock());
    group.record({ of: "probed", cause });
    const before = this.#states.countOf(name);
    try {
      const { bucket } = await this.#requests.read(name, shard, deadline);
      if (bucket !== undefined) this.#splitter.loads?.recordMeter(bucket);
      const learnt = (this.#states.countOf(name) ?? 1) > (before ?? 1);
      // More shards of a bucket without tokens would grant nothing more.
      if (bucket === undefined || learnt || this.#states.isScarce(name, config)) return;
      await this.#splitter.splitHot(bucket, "throttled", deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // The shard cannot even be read. A second shard, if there is one, shows how many there are.
      if (error.keyRange && before === undefined) await this.#readQuietly(group, 1);
    }
  }

  async #readQuietly({ name, deadline }: ConsumeGroup, shard: number): Promise<void> {
    try {
      await this.#requests.read(name, shard, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
  }
}
