/**
 * Follows every write to every shard with an ideal one: nothing above it (never over-admitted),
 * nothing below it (nothing lost). Balances may only move between shards in one transaction.
 */

import type { Condition } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Landing, TableCall } from "@zae-limiter/testing/table/call.ts";
import { imageOf, isBucket, type LimitOfShard, type ShardImage } from "./bucket-image.ts";
import { type Charged, chargedBy, isOperation } from "./charges.ts";
import { imageBefore, isStub, isTakenIn, type MergedShard, mergedInto } from "./merged-shard.ts";
import { Moments, turnOf } from "./moments.ts";
import { flowOf, Share } from "./share.ts";
import { heldOf } from "./slots/slot-image.ts";
import { Violation } from "./violation.ts";

/** A landing on a bucket, parsed. */
export interface BucketLanding {
  readonly PK: string;
  readonly before: ShardImage | undefined;
  readonly after: ShardImage | undefined;
  /** Time of the process's clock when the write was planned. */
  readonly plannedMs: number;
  /** The limits whose remainder the write knew for certain, because its condition names it. */
  readonly exactLimits: ReadonlySet<string>;
  /** Milli-tokens consumed from each limit; negative when refunded. */
  readonly charged: Charged;
  /** The shard that a merge has taken in; `before` then counts what both have consumed. */
  readonly merged?: MergedShard | undefined;
  /** It gives slots back: its process finds out whether it has happened, whatever the answer. */
  readonly givesSlots?: boolean;
}

/** How deep in debt adjustments may have brought a limit, in milli-tokens. */
export type DebtOf = (bucket: string, limitName: string) => bigint;

/** No write is sent longer than this after it was planned. */
const CALL_MS_MAX = 1500;
/** A base time that is pulled back over a boundary gives up three parts of a milli-token. */
const PARTS_GIVEN_UP = 3n;
const SLOT_ENTRY = /^s_.+_h_/;

type Shares = Map<string, Share>;

export class Ledger {
  readonly #shards = new Map<string, Shares>();
  readonly #debtOf: DebtOf;

  constructor(debtOf: DebtOf) {
    this.#debtOf = debtOf;
  }

  landed(landings: readonly BucketLanding[]): void {
    for (const landing of landings) {
      if (landing.after === undefined) this.#shards.delete(landing.before?.id ?? "");
      else if (landing.merged !== undefined) this.#merged(landing, landing.after, landing.merged);
      else if (landing.before !== undefined) this.#changed(landing, landings);
    }
    // New shards take what the old ones have given, so they come last.
    for (const landing of landings) {
      if (landing.before === undefined && landing.after !== undefined) {
        this.#created(landing, landings);
      }
    }
    for (const { after } of landings) if (after !== undefined) this.#judge(after);
  }

  /** Returns the highest and lowest balance of a limit, in milli-tokens, for the final check. */
  levels(
    bucket: string,
    limitName: string,
    images: readonly ShardImage[],
    nowMs: number,
  ): { least: number; most: number } {
    let [least, most] = [0, 0];
    for (const image of images) {
      if (image.bucket !== bucket) continue;
      const share = this.#shards.get(image.id)?.get(limitName);
      if (share === undefined) continue;
      share.refill(nowMs);
      least += Number(share.lowest) / Number(share.rate.period);
      most += Number(share.highest) / Number(share.rate.period);
    }
    return { least, most };
  }

  #changed(landing: BucketLanding, all: readonly BucketLanding[]): void {
    const { plannedMs } = landing;
    const { before, after } = landing as { before: ShardImage; after: ShardImage };
    const shares = this.#shards.get(after.id) ?? new Map<string, Share>();
    this.#shards.set(after.id, shares);
    const kept = new Set(after.limits.map(({ name }) => name));
    for (const name of shares.keys()) if (!kept.has(name)) shares.delete(name);
    const made = shardsMadeBy(landing, all);
    for (const limit of ratesOf(after)) {
      const flow = flowOf(limit, after.shard, after.count);
      const share = shares.get(limit.name);
      if (share !== undefined && all.length === 1 && isAnnouncement(before, after)) {
        const atMs = Math.max(plannedMs, share.atMs);
        shares.set(limit.name, Share.stored(flow, { ...limit, epochMs: after.epochMs }, atMs));
        continue;
      }
      const was = before.limits.find(({ name }) => name === limit.name);
      if (share === undefined || was === undefined) {
        // It is full at the epoch, which is ahead of a clock that is slower than another.
        const startMs = Math.max(plannedMs, after.epochMs);
        const fresh = Share.full(flow, startMs);
        fresh.take(landing.charged.get(limit.name) ?? 0n, startMs);
        shares.set(limit.name, fresh);
        continue;
      }
      share.refill(plannedMs);
      if (!share.follows(flow)) {
        const moved = movedTo(made, limit.name, plannedMs);
        share.change(flow, plannedMs, moved, landing.exactLimits.has(limit.name));
      }
      chargeTo(share, limit.name, landing);
    }
  }

  /** Checks that a merge keeps the sum of both shards and consumes nothing. */
  #merged({ plannedMs }: BucketLanding, after: ShardImage, { image: gone }: MergedShard): void {
    const [mine, others] = [this.#shards.get(after.id), this.#shards.get(gone.id)];
    const shares: Shares = new Map();
    for (const limit of ratesOf(after)) {
      // A limit that a shard does not have would start full in it.
      const shareIn = (known: Shares | undefined, shard: number) =>
        known?.get(limit.name) ??
        Share.full(flowOf(limit, shard, gone.count), Math.max(plannedMs, after.epochMs));
      const share = shareIn(mine, after.shard);
      const flow = flowOf(limit, after.shard, after.count);
      share.absorb(shareIn(others, gone.shard), flow, plannedMs);
      shares.set(limit.name, share);
    }
    this.#shards.set(after.id, shares);
    this.#shards.delete(gone.id);
  }

  #created(landing: BucketLanding, all: readonly BucketLanding[]): void {
    const image = landing.after as ShardImage;
    const gone = this.#shards.get(image.id);
    // No client has deleted it, so its TTL was over.
    if (gone !== undefined) refuseLoss(image, gone);
    const origin = all.find((other) => shardsMadeBy(other, all).includes(image));
    const shares: Shares = new Map();
    for (const limit of ratesOf(image)) {
      const flow = flowOf(limit, image.shard, image.count);
      const rate = flow.at(image.epochMs);
      const level = { ...limit, epochMs: image.epochMs };
      const share =
        image.shard === 0
          ? Share.full(flow, image.epochMs)
          : new Share(
              flow,
              image.epochMs,
              origin === undefined
                ? givenBy(all, image, limit.name) * rate.period
                : Share.numerator(rate, level, image.epochMs),
            );
      // A shard that begins with a part of another has taken that part already.
      if (image.shard === 0) share.take(landing.charged.get(limit.name) ?? 0n, image.epochMs);
      shares.set(limit.name, share);
    }
    this.#shards.set(image.id, shares);
  }

  #judge(image: ShardImage): void {
    for (const limit of ratesOf(image)) {
      const share = this.#shards.get(image.id)?.get(limit.name) as Share;
      const stored = { ...limit, epochMs: image.epochMs };
      const subject = `"${limit.name}" of ${image.id}`;
      const verdict = share.judge(stored);
      if (verdict === "above") {
        throw new Violation("over-admission", subject, share.describe(stored));
      }
      if (verdict === "below") throw new Violation("conservation", subject, share.describe(stored));
      if (share.owes(stored, this.#debtOf(image.bucket, limit.name))) {
        const detail = `is in debt, and no adjustment was: ${share.describe(stored)}`;
        throw new Violation("over-admission", subject, detail);
      }
    }
  }
}

/** Lists the limits that accrue; `quotas.ts` follows the others. */
export function ratesOf({ limits }: ShardImage): readonly LimitOfShard[] {
  return limits.filter(({ quota }) => quota === undefined);
}

/** Parses the landings on buckets, once for all checkers. */
export function bucketLandings(
  call: TableCall,
  landings: readonly Landing[],
  moments = new Moments(),
  bypasses = false,
): BucketLanding[] {
  const context = { operated: landings.some(isOperation), bypasses };
  return landings.flatMap((landed) => {
    const { key, after: next, condition } = landed;
    if (!isBucket(key) || isTakenIn(landed, landings)) return [];
    const merged = mergedInto(landed, landings);
    const stored = imageBefore(landed, merged);
    const after = next && imageOf(next);
    const gone = merged === undefined && isLeftBehind(stored, after);
    const before = gone ? undefined : stored;
    if (next !== undefined && after === undefined) {
      const detail = `an attribute is missing: ${Object.keys(next).join(" ")}`;
      throw new Violation("ghosts", key.PK, detail);
    }
    const turnMs = turnIn(landed, landings, call.plannedMs);
    const sentMs = turnMs ?? momentIn(call, landed, before, moments);
    const plannedMs = plannedFor(sentMs, before, after, landings.length === 1);
    const givesSlots = heldOf(landed.after) < heldOf(landed.before);
    const exactLimits = exactLimitsOf(condition);
    const landing = { PK: key.PK, plannedMs, exactLimits, ...(givesSlots ? { givesSlots } : {}) };
    const charged = chargedBy(before, after, context);
    const removal = { ...landing, before: stored, after: undefined, charged: new Map() };
    return [...removalOf(gone, removal), { ...landing, before, after, merged, charged }];
  });
}

/** Returns the moment at which a write counts. */
function momentIn(
  call: TableCall,
  { key, condition = [] }: Landing,
  before: ShardImage | undefined,
  moments: Moments,
): number {
  if (before === undefined) return call.plannedMs;
  // A transaction counts at the moment it was sent: it is never planned for an earlier one.
  const bounds = call.operation === "TransactWriteItems" ? [] : condition;
  return moments.of(call, before, key.PK, bounds);
}

/** Returns when a write was planned that moves slots; `undefined` for all others. */
function turnIn(
  { before, after }: Landing,
  all: readonly Landing[],
  sentMs: number,
): number | undefined {
  if (before === undefined || after === undefined) return undefined;
  // A split and a merge change counts, and take no turn.
  if (all.some((each) => each.before === undefined || isStub(each.after))) return undefined;
  if (!all.some(movesSlots)) return undefined;
  const [was, is] = [imageOf(before), imageOf(after)];
  return was === undefined || is === undefined ? undefined : turnOf(was, is, sentMs);
}

function movesSlots({ before, after }: Landing): boolean {
  const names = Object.keys({ ...before, ...after }).filter((name) => SLOT_ENTRY.test(name));
  return names.some((name) => before?.[name] !== after?.[name]);
}

function removalOf(gone: boolean, removed: BucketLanding): readonly BucketLanding[] {
  return gone ? [removed] : [];
}

/** Whether a new shard takes the place of one that the deletion of its bucket has left behind. */
function isLeftBehind(before: ShardImage | undefined, after: ShardImage | undefined): boolean {
  if (before === undefined || after === undefined || after.shard === 0) return false;
  return after.count < before.count && after.limits.every(({ consumed }) => consumed === 0n);
}

function exactLimitsOf(condition: Condition = []): ReadonlySet<string> {
  const exact = new Set<string>();
  for (const { is, name } of condition) {
    const limitName = is === "=" ? /^b_(.+)_rr$/.exec(name)?.[1] : undefined;
    if (limitName !== undefined) exact.add(limitName);
  }
  return exact;
}

/**
 * Returns the time a write was planned at. A write that rebases a bucket contains it: it may have
 * been planned from an older answer, and sent later.
 */
function plannedFor(
  plannedMs: number,
  before: ShardImage | undefined,
  after: ShardImage | undefined,
  isAlone: boolean,
): number {
  if (after === undefined) return plannedMs;
  if (before === undefined) return after.epochMs;
  // Only another library announces shards without moving the base time, which then says nothing.
  if (isAlone && isAnnouncement(before, after)) return plannedMs;
  const settles = before.epochMs !== after.epochMs || !sameParameters(before, after);
  return settles ? Math.min(plannedMs, after.epochMs) : plannedMs;
}

function sameParameters(before: ShardImage, after: ShardImage): boolean {
  return (
    before.count === after.count &&
    before.limits.length === after.limits.length &&
    after.limits.every((limit) => {
      const was = before.limits.find(({ name }) => name === limit.name);
      return (
        was?.capacity === limit.capacity &&
        was.refill === limit.refill &&
        was.period === limit.period
      );
    })
  );
}

/**
 * Whether another library has announced shards, without moving the base time or making them: a
 * split of ours writes both halves at once. All clients then count the time since the base time by
 * the new share: tokens are lost, none are created.
 */
export function isAnnouncement(before: ShardImage, after: ShardImage): boolean {
  return before.epochMs === after.epochMs && before.count !== after.count;
}

/**
 * Returns what another shard gives, in the same transaction, to one that was announced and not
 * made, in milli-tokens. The shard that gives is checked too: it may give only what exceeds its
 * share.
 */
function givenBy(all: readonly BucketLanding[], made: ShardImage, limitName: string): bigint {
  for (const { before, after } of all) {
    if (before === undefined || after?.bucket !== made.bucket) continue;
    if (before.count !== after.count || before.epochMs !== after.epochMs) continue;
    const tokensOf = ({ limits }: ShardImage) =>
      limits.find(({ name }) => name === limitName)?.tokens ?? 0n;
    return tokensOf(before) - tokensOf(after);
  }
  return 0n;
}

/** Lists the new shards of a shard that `changed` has split, in two or in more. */
export function shardsMadeBy(
  { before, after }: Pick<BucketLanding, "before" | "after">,
  all: readonly BucketLanding[],
): readonly ShardImage[] {
  if (before === undefined || after === undefined || after.count <= before.count) return [];
  return all.flatMap(({ before: old, after: made }) => {
    if (old !== undefined || made?.bucket !== after.bucket || made.count !== after.count) return [];
    const isPart = made.shard > after.shard && (made.shard - after.shard) % before.count === 0;
    return isPart ? [made] : [];
  });
}

/** Returns the initial balance of new shards over their period; `undefined` without the limit. */
function movedTo(
  made: readonly ShardImage[],
  limitName: string,
  plannedMs: number,
): bigint | undefined {
  let moved: bigint | undefined;
  for (const { shard, count, epochMs, limits } of made) {
    const limit = limits.find(({ name }) => name === limitName);
    if (limit === undefined) continue;
    const atMs = Math.max(plannedMs, epochMs);
    const rate = flowOf(limit, shard, count).at(atMs);
    moved = (moved ?? 0n) + Share.numerator(rate, { ...limit, epochMs }, atMs);
  }
  return moved;
}

function refuseLoss(image: ShardImage, gone: Shares): void {
  for (const [name, share] of gone) {
    share.refill(image.epochMs);
    // One that is made again is full by the numbers of its window; it was full by others before.
    if (share.isFull || share.isFullButForBoundary) continue;
    throw new Violation("over-admission", `"${name}" of ${image.id}`, "expired before it was full");
  }
}

/** Charges what a write has consumed, which may count before a boundary that has passed. */
function chargeTo(share: Share, limitName: string, landing: BucketLanding): void {
  const { plannedMs } = landing;
  const { before, after } = landing as { before: ShardImage; after: ShardImage };
  const charged = landing.charged.get(limitName) ?? 0n;
  // Refunds need to know nothing of the bucket: they count before the boundary.
  if (charged > 0n && share.isBoundaryBetween(after.epochMs, plannedMs - CALL_MS_MAX)) {
    const detail = `was consumed from at ${plannedMs} by the numbers of ${after.epochMs}`;
    throw new Violation("over-admission", `"${limitName}" of ${after.id}`, detail);
  }
  const isBefore = share.isBoundaryBetween(after.epochMs, share.atMs);
  if (isBefore && after.epochMs < before.epochMs) {
    share.pullBack(after.epochMs, PARTS_GIVEN_UP);
  }
  share.take(charged, plannedMs, isBefore);
}
