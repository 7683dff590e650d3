/**
 * A write that moves the base time to now: when the limits change, when the base time is old or
 * lies in the future, or when the arithmetic would leave the safe integers. It folds the accrued
 * tokens of every limit in, and the consume that made it necessary goes along in the same write.
 *
 * The new base time never lies before the old one, unless that one is far ahead: of two clients
 * whose clocks differ, the slower one must not count again, at another rate, the time that the
 * faster one has folded in. Cached states are distinguished by their base time, so rebases to the
 * same one are numbered.
 */

import { type Rate, shardRate } from "../../../core/bucket.ts";
import { mulAddDiv } from "../../../core/integers.ts";
import { invariant } from "../../../domain/check.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import {
  PYTHON_LIMIT_SUFFIXES,
  softStamp,
  unscheduled,
} from "../../../records/python-attributes.ts";
import type { LeftOver } from "../../bucket-ttl.ts";
import { appliesAnyway, sameRate, staleNames } from "../../config-match.ts";
import { type AmountsByName, amountsByName, type BucketConfig, fits, takenOf } from "../../leg.ts";
import type { ConsumePlan, Evaluation } from "./consume-plan.ts";
import {
  type BalanceAt,
  balanceAt,
  balanceOf,
  boundedChange,
  builtFrom,
  EPOCH_AHEAD_MS_MAX,
  isPinned,
  looksFull,
  REBASES,
  type SeenBucket,
} from "./seen-bucket.ts";
import {
  countAcquires,
  type PlanContext,
  planTtl,
  requireCovered,
  requireEnabled,
  WritePlan,
} from "./write-plan.ts";
import { isMetered, moveMeter } from "./writes-meter.ts";

const SUFFIXES = ["tk", "cp", "ra", "rp", "tc", "rr"] as const;

/** Plans a rebase with a consume. `applies`: the bucket takes the limits of the config. */
export function planRebase(
  bucket: SeenBucket,
  config: BucketConfig,
  amountsMilli: readonly number[],
  context: PlanContext,
  applies: boolean,
): ConsumePlan {
  const amounts = amountsByName(config, amountsMilli);
  const rebase = rebaseOf(bucket, config, amounts, context, applies);
  const balancesMilli = rebase.balancesBefore(config);
  if (context.force !== true && !fits(config, amountsMilli, balancesMilli)) {
    const limitsOnly = limitsAlone(bucket, config, context, applies);
    return { kind: "refused", balancesMilli, limitsOnly };
  }
  const { plan } = rebase;
  countAcquires(plan, amountsMilli, context);
  rebase.moveEpoch();
  if (applies) setOrigin(plan, bucket, config);
  const taken = amountsByName(config, takenOf(config, amountsMilli));
  const ttl = planTtl(plan, bucket, config, rebase.leftOver(taken), context);
  requireCovered(plan, bucket, rebase.balances, taken, ttl, context);
  plan.requireSeen(bucket, context.nowMs);
  if (context.force !== true) requireEnabled(plan, bucket);
  return { kind: "write", plan, guesses: [] };
}

/** Returns the balances that a consume with a rebase would find. */
export function evaluateRebase(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
  applies: boolean,
): Evaluation {
  const rebase = rebaseOf(bucket, config, new Map(), context, applies);
  return {
    balancesMilli: rebase.balancesBefore(config),
    limitsOnly: limitsAlone(bucket, config, context, applies),
  };
}

/** Returns the write that only applies the limits of the config, where a refusal applies them. */
function limitsAlone(
  bucket: SeenBucket,
  config: BucketConfig,
  context: PlanContext,
  applies: boolean,
): WritePlan | undefined {
  if (!applies || !appliesAnyway(builtFrom(bucket), config)) return undefined;
  const nothing = config.limits.map(() => 0);
  const plan = planRebase(bucket, config, nothing, { ...context, acquires: 0 }, true);
  return plan.kind === "write" ? plan.plan : undefined;
}

function rebaseOf(
  bucket: SeenBucket,
  config: BucketConfig,
  amounts: AmountsByName,
  context: PlanContext,
  applies: boolean,
): Rebase {
  const rebase = new Rebase(bucket, context);
  if (applies) rebase.apply(config, amounts);
  else rebase.keep(amounts);
  return rebase;
}

/** Collects the write, limit by limit. */
class Rebase {
  readonly plan = new WritePlan();
  /** The present balances of the limits that stay. */
  readonly balances = new Map<string, BalanceAt>();
  readonly #bucket: SeenBucket;
  readonly #context: PlanContext;
  /** The old parameters count up to this time. */
  readonly #epochMs: number;
  /** The base time stays, and balances are set relative to it. */
  readonly #pinned: boolean;
  readonly #balances = new Map<string, LeftOver>();

  constructor(bucket: SeenBucket, context: PlanContext) {
    const { nowMs } = context;
    const { refilledAtMs } = bucket;
    const farAhead = refilledAtMs - nowMs > EPOCH_AHEAD_MS_MAX;
    this.#bucket = bucket;
    this.#context = context;
    this.#pinned = isPinned(bucket);
    this.#epochMs = farAhead ? nowMs : Math.max(nowMs, refilledAtMs);
    if (this.#pinned) this.#epochMs = refilledAtMs;
    invariant(
      farAhead || this.#epochMs >= refilledAtMs,
      "only a base time that is far ahead is moved back",
    );
  }

  moveEpoch(): void {
    moveEpoch(this.plan, this.#bucket, this.#epochMs);
    if (!isMetered(this.#context)) return;
    moveMeter(this.plan, this.#bucket, this.#epochMs, this.#context.costMs);
  }

  /** Keeps the limits as they are. */
  keep(amounts: AmountsByName): void {
    for (const [name, stored] of this.#bucket.limits) {
      this.#fold(name, stored, stored.rate, amounts.get(name) ?? 0);
    }
  }

  /** Replaces the limits by those of the config. */
  apply(config: BucketConfig, amounts: AmountsByName): void {
    const { limits } = this.#bucket;
    const wanted = new Map(config.limits.map(({ name, rate }) => [name, rate]));
    const stale = new Set(staleNames(builtFrom(this.#bucket), config));
    for (const name of stale) this.plan.remove(...SUFFIXES.map((suffix) => `b_${name}_${suffix}`));
    for (const [name, stored] of limits) {
      if (stale.has(name)) continue;
      const rate = wanted.get(name) ?? stored.rate;
      if (this.#pinned) this.#foldPinned(name, stored, rate, amounts.get(name) ?? 0);
      else this.#fold(name, stored, rate, amounts.get(name) ?? 0);
    }
    for (const [name, rate] of wanted) {
      if (!limits.has(name)) this.#start(name, rate, amounts.get(name) ?? 0);
    }
    if (this.#context.rules.isSharedWithPython) this.#hintSoft(config);
  }

  /**
   * Stamps soft limits: to the Python library one without a stamp is hard, also if that is over.
   */
  #hintSoft({ limits, source }: BucketConfig): void {
    const { python, limits: known } = this.#bucket;
    for (const { name, soft } of limits) {
      const stamp = softStamp(name);
      const isKnown = known.has(name);
      const isMissing = !isKnown || python?.stamps[stamp] === undefined;
      if (soft && isMissing && source !== "override") this.plan.set(stamp, this.#context.nowMs);
      else if (!isKnown && python !== undefined) this.plan.remove(stamp);
    }
  }

  /** Moves one limit to the new base time, capped by both capacities, less the amount. */
  #fold(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const { plan } = this;
    const { nowMs, force, soft } = this.#context;
    const taken = this.#taken(amount);
    const now = balanceAt(this.#bucket, stored, nowMs);
    const balance = balanceAt(this.#bucket, stored, this.#epochMs);
    const share = this.#shareOf(rate);
    const capacityMilli = Math.min(balance.share.capacityMilli, share.capacityMilli);
    const full = looksFull({ ...balance, share: { ...share, capacityMilli } });
    const remainder = full
      ? 0
      : mulAddDiv(balance.remainder, share.periodMs, 0, balance.share.periodMs);
    const tokens = `b_${name}_tk`;
    if (full) {
      plan.set(tokens, capacityMilli - taken);
      plan.requireFull(name, balance, capacityMilli);
    } else {
      plan.add(tokens, boundedChange(stored.tokensMilli, balance.accruedMilli - taken));
      plan.requireLow(name, balance, capacityMilli);
      plan.requireRemainder(name, balance);
    }
    if (taken > 0 && force !== true && soft?.has(name) !== true) {
      plan.requireEnough(name, now, taken);
    }
    plan.add(`b_${name}_tc`, amount);
    if (!sameRate(rate, stored.rate)) setParameters(plan, name, rate);
    plan.setRemainder(name, balance, remainder);
    const balanceMilli = Math.min(balanceOf(now), share.capacityMilli);
    this.#balances.set(name, { rate: share, balanceMilli });
    this.balances.set(name, { ...now, share });
  }

  /** Gives one limit a new rate from now on, while the base time stays where it is. */
  #foldPinned(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const { plan } = this;
    const { nowMs } = this.#context;
    const now = balanceAt(this.#bucket, stored, nowMs);
    const share = this.#shareOf(rate);
    const balanceMilli = Math.min(balanceOf(now), share.capacityMilli);
    this.#balances.set(name, { rate: share, balanceMilli });
    this.balances.set(name, { ...now, share });
    if (amount === 0 && sameRate(rate, stored.rate)) return;
    plan.require({ is: "=", name: `b_${name}_tk`, value: stored.tokensMilli });
    plan.set(`b_${name}_tk`, balanceMilli - this.#accruedMilli(rate) - this.#taken(amount));
    plan.add(`b_${name}_tc`, amount);
    plan.remove(`b_${name}_rr`);
    setParameters(plan, name, rate);
  }

  /** Returns what a rate accrues from the base time until now; 0 where the base time is now. */
  #accruedMilli(rate: Rate): number {
    if (!this.#pinned) return 0;
    const { nowMs } = this.#context;
    const fresh = { tokensMilli: 0, rate, totalConsumedMilli: 0, remainder: 0 };
    return balanceAt(this.#bucket, fresh, nowMs).accruedMilli;
  }

  /** Starts a limit that the bucket did not have: full. */
  #start(name: string, rate: Rate, amount: number): void {
    const { plan } = this;
    const { python } = this.#bucket;
    const share = this.#shareOf(rate);
    const tokensMilli = share.capacityMilli - this.#accruedMilli(rate) - this.#taken(amount);
    plan.set(`b_${name}_tk`, tokensMilli);
    // A limit with an invalid remainder counts as absent, and would go on doing so.
    plan.remove(`b_${name}_rr`);
    if (python?.unsupported.has(name) === true) {
      // What it consumed so far was counted for usage, and stays.
      plan.add(`b_${name}_tc`, amount);
    } else {
      plan.set(`b_${name}_tc`, amount);
    }
    const kept = unscheduled(python, name);
    for (const [attribute, value] of Object.entries(kept)) plan.set(attribute, value);
    const others = PYTHON_LIMIT_SUFFIXES.map((suffix) => `b_${name}_${suffix}`);
    const isOwn = (one: string) => Object.hasOwn(kept, one) || one === softStamp(name);
    if (python !== undefined) plan.remove(...others.filter((one) => !isOwn(one)));
    setParameters(plan, name, rate);
    this.#balances.set(name, { rate: share, balanceMilli: share.capacityMilli });
  }

  /** Returns the balances before the consume; a limit that is not in the bucket is full. */
  balancesBefore({ limits }: BucketConfig): readonly number[] {
    return limits.map(
      ({ name, rate }) => this.#balances.get(name)?.balanceMilli ?? rate.capacityMilli,
    );
  }

  *leftOver(amounts: AmountsByName): Generator<LeftOver> {
    for (const [name, { rate, balanceMilli }] of this.#balances) {
      yield { rate, balanceMilli: balanceMilli - (amounts.get(name) ?? 0) };
    }
  }

  /** Returns the milli-tokens that the balance loses. */
  #taken(amount: number): number {
    return this.#context.bypass === true ? 0 : amount;
  }

  #shareOf(rate: Rate): Rate {
    return shardRate(rate, this.#bucket.shard, this.#bucket.shardCount);
  }
}

/** Moves the base time; rebases to the same one are numbered, to distinguish cached states. */
export function moveEpoch(plan: WritePlan, bucket: SeenBucket, epochMs: number): number {
  const { refilledAtMs, rebases } = bucket;
  const again = epochMs === refilledAtMs;
  if (again) plan.set(REBASES, rebases + 1);
  else if (rebases > 0) plan.remove(REBASES);
  plan.set("rf", epochMs);
  return again ? rebases + 1 : 0;
}

/**
 * Limits that came with a call leave the version alone: the stored config still counts from there.
 * The version is never lowered, although the counter may be: a client with older limits cached
 * under a higher version would bring them back.
 */
function setOrigin(plan: WritePlan, bucket: SeenBucket, { source, version }: BucketConfig): void {
  if (source !== "override" && version > bucket.configVersion) plan.set("cv", version);
  plan.set("cs", source);
}

function setParameters(plan: WritePlan, name: string, rate: Rate): void {
  plan.set(`b_${name}_cp`, rate.capacityMilli);
  plan.set(`b_${name}_ra`, rate.refillMilli);
  plan.set(`b_${name}_rp`, rate.periodMs);
}
