/**
 * The last state that this process saw of each bucket shard. A cached state is a hint, never a
 * permission: it picks the form of a write, whose conditions then decide.
 *
 * The protocol:
 * 1. `observe` before every request, and call the result with the answer. An answer to a request
 *    that began before a change of this process (`changed`, `forget`) is *late*: it does not
 *    replace the cached state, and nothing is refused by it.
 * 2. `predict` before a write is sent, and call the result when nothing was written after all. A
 *    prediction counts as never seen, so nothing is refused by it.
 * 3. `changed` after a write whose answer did not show the state.
 *
 * A limit that seems full may not be: other clients may have consumed since. At a utilisation u it
 * is not full for about u of the time, whenever this process reads it. So each entry counts how
 * often a limit that seemed full was full, and trusts that when it was right more often than not:
 * then the lesser of u and 1 - u of the consumes need a second call. A limit that does not seem
 * full needs no prediction and is not counted.
 */

import { boundedMap } from "../../../base/bounded-map.ts";
import { isRecent } from "../../../base/time.ts";
import { invariant } from "../../../domain/check.ts";
import type { Key } from "../../../storage/item.ts";
import type { AmountsByName, Link } from "../../leg.ts";
import { KNOWN_MS } from "../../spent.ts";
import type { SeenBucket } from "../plan/seen-bucket.ts";

const STATES_MAX = 10_000;
/** The first observations count evenly; later ones have at least this weight. */
const LEARNING_RATE_MIN = 0.02;
const NEVER = Number.NEGATIVE_INFINITY;
/** A process that slept longer, as Lambdas do between calls, compares before it consumes. */
const LATE_MS = 60_000;

/** A bucket that was young when this process first saw it. */
export interface YoungBucket {
  readonly key: Key;
  readonly entityId: string;
  /** The link that the bucket had. */
  readonly link: Link;
  /** When this process first saw it, by the timer. */
  readonly atMs: number;
}

export interface CachedState {
  /** `undefined`: there is no such item. */
  readonly bucket: SeenBucket | undefined;
  /** When an answer showed it; never, for a prediction and for a late answer. */
  readonly seenAtMs: number;
  /** The time of the balances, whether they were seen or predicted. */
  readonly asOfMs: number;
}

/** How often a limit that seemed full was full. */
interface Habit {
  readonly fullShare: number;
  readonly sightings: number;
}

interface Entry {
  state: CachedState | undefined;
  /** How often the state began from scratch: shown by the store, assumed, or forgotten. */
  begun: number;
  readonly habits: Map<string, Habit>;
  /** The number of the last change of this process that made earlier answers late. */
  change: number;
}

/** Records what a request that has begun has shown. */
export type Observe = (bucket: SeenBucket | undefined, nowMs: number) => CachedState;

/** Takes back the prediction of a write that was not made. */
export type Unpredict = (amountsMilli: AmountsByName) => void;

/** The stored balance of a limit after a write, if no other client writes. */
export interface Prediction {
  readonly limitName: string;
  readonly tokensMilli: number;
  readonly remainder: number;
}

/** Without experience a limit that seems full counts as full. */
const NO_HABIT: Habit = { fullShare: 1, sightings: 1 };

export class CachedStates {
  readonly #entries = boundedMap<Entry>(STATES_MAX);
  #changes = 0;
  /** Buckets whose links wait to be compared, in the order in which they were seen. */
  readonly young = new Map<string, YoungBucket>();

  get(id: string): CachedState | undefined {
    return this.#entries.get(id)?.state;
  }

  /** Returns whether the link of a bucket should have been compared long ago, by the timer. */
  isLinkLate(id: string, nowMs: number): boolean {
    const young = this.young.get(id);
    return young !== undefined && nowMs - young.atMs > LATE_MS;
  }

  /** Returns the number of the last change of this process to the shard; 0 when there was none. */
  changeOf(id: string): number {
    return this.#entries.get(id)?.change ?? 0;
  }

  /** Returns a function that says of a limit that seems full whether it is likely to be full. */
  trustsFull(id: string): (limitName: string) => boolean {
    const habits = this.#entries.get(id)?.habits;
    return (limitName) => (habits?.get(limitName) ?? NO_HABIT).fullShare >= 0.5;
  }

  /** Returns a function to call with the answer of a request that begins now. */
  observe(id: string): Observe {
    const begun = this.#changes;
    return (bucket, nowMs) => {
      const entry = this.#entryOf(id);
      const late = entry.change > begun;
      const state = { bucket, seenAtMs: late ? NEVER : nowMs, asOfMs: nowMs };
      if (bucket !== undefined) this.#dropMerged(id, bucket, entry.state?.bucket?.shardCount ?? 1);
      if (!late || entry.state === undefined) begin(entry, state);
      return state;
    };
  }

  /**
   * Sets what the item will look like after a write that was not answered yet, so that calls which
   * start meanwhile count with it.
   */
  predict(id: string, bucket: SeenBucket, balances: readonly Prediction[]): Unpredict {
    const limits = new Map(bucket.limits);
    for (const { limitName, tokensMilli, remainder } of balances) {
      const stored = limits.get(limitName);
      invariant(stored !== undefined, "a prediction is about a limit that the bucket has");
      limits.set(limitName, { ...stored, tokensMilli, remainder });
    }
    const entry = this.#entryOf(id);
    const { state: before, begun } = entry;
    const predicted = unseen(entry, { ...bucket, limits });
    entry.state = predicted;
    return (amountsMilli) => {
      // A state that the store has shown since does not contain the prediction.
      if (this.#entries.get(id) !== entry || entry.begun !== begun) return;
      const names = balances.map(({ limitName }) => limitName);
      if (entry.state === predicted) entry.state = before;
      else if (entry.state !== undefined) entry.state = without(entry.state, names, amountsMilli);
    };
  }

  /** Sets a state that this process derived itself; no answer has confirmed it. */
  assume(id: string, bucket: SeenBucket): void {
    const entry = this.#entryOf(id);
    begin(entry, unseen(entry, bucket));
  }

  /** Records a refund or a consume of this process whose answer did not show the state. */
  changed(id: string, deltasMilli: AmountsByName): void {
    const entry = this.#entryOf(id);
    const { state } = entry;
    this.#voidEarlier(entry);
    if (state?.bucket === undefined) {
      entry.state = undefined;
      return;
    }
    const limits = new Map(state.bucket.limits);
    for (const [name, delta] of deltasMilli) {
      const stored = limits.get(name);
      if (stored === undefined) continue;
      limits.set(name, { ...stored, tokensMilli: stored.tokensMilli - delta });
    }
    entry.state = { ...state, bucket: { ...state.bucket, limits }, seenAtMs: NEVER };
  }

  /** Remembers whether limits that seemed full were full. */
  learn(id: string, sightings: readonly { limitName: string; full: boolean }[]): void {
    if (sightings.length === 0) return;
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    for (const { limitName, full } of sightings) {
      const known = entry.habits.get(limitName) ?? NO_HABIT;
      // It was full as long as the sightings count: one more changes nothing.
      if (full && known.fullShare === 1 && known.sightings * LEARNING_RATE_MIN >= 1) continue;
      const weight = Math.max(LEARNING_RATE_MIN, 1 / (known.sightings + 1));
      const fullShare = known.fullShare + weight * ((full ? 1 : 0) - known.fullShare);
      invariant(fullShare >= 0 && fullShare <= 1, "a share is between 0 and 1");
      entry.habits.set(limitName, { fullShare, sightings: known.sightings + 1 });
    }
  }

  /** Drops the state, and keeps what was learned. */
  forget(id: string): void {
    const entry = this.#entryOf(id);
    this.#voidEarlier(entry);
    begin(entry, undefined);
  }

  clear(): void {
    for (const id of [...this.#entries.keys()]) this.forget(id);
  }

  /** Drops the cached states of merged shards; a later shard of that number is another one. */
  #dropMerged(id: string, { shard, shardCount }: SeenBucket, before: number): void {
    if (before <= shardCount) return;
    const place = id.slice(0, id.lastIndexOf("#") + 1);
    // The first shard counts all of them, and each other one those that descend from it.
    const step = shard === 0 ? 1 : shardCount;
    for (let gone = shard + shardCount; gone < before; gone += step) {
      if (this.#entries.has(`${place}${gone}`)) this.forget(`${place}${gone}`);
    }
  }

  #voidEarlier(entry: Entry): void {
    this.#changes += 1;
    invariant(entry.change < this.#changes, "changes are numbered upwards");
    entry.change = this.#changes;
  }

  /** Returns the entry, which is changed in place: a call reads it several times. */
  #entryOf(id: string): Entry {
    const known = this.#entries.get(id);
    if (known !== undefined) return known;
    const entry: Entry = { state: undefined, begun: 0, habits: new Map(), change: 0 };
    this.#entries.set(id, entry);
    return entry;
  }
}

function begin(entry: Entry, state: CachedState | undefined): void {
  entry.state = state;
  entry.begun += 1;
}

function unseen({ state }: Entry, bucket: SeenBucket): CachedState {
  return {
    bucket,
    seenAtMs: NEVER,
    asOfMs: Math.max(state?.asOfMs ?? NEVER, bucket.refilledAtMs),
  };
}

/**
 * Returns the state without a consume that was not made, where it counts with other predictions
 * too.
 */
function without(
  state: CachedState,
  limitNames: readonly string[],
  amountsMilli: AmountsByName,
): CachedState {
  const { bucket } = state;
  if (bucket === undefined) return state;
  const limits = new Map(bucket.limits);
  for (const name of limitNames) {
    const stored = limits.get(name);
    if (stored === undefined) continue;
    const tokensMilli = stored.tokensMilli + (amountsMilli.get(name) ?? 0);
    limits.set(name, { ...stored, tokensMilli });
  }
  return { ...state, bucket: { ...bucket, limits } };
}

/** Returns when a state was shown; one that never was is a prediction from one that was. */
export function shownMs(state: CachedState | undefined, nowMs: number): number {
  return state !== undefined && state.seenAtMs > 0 ? state.seenAtMs : nowMs;
}

/** Returns whether a state may refuse without a call. */
export function mayRefuse({ seenAtMs }: CachedState, nowMs: number, withinMs = KNOWN_MS): boolean {
  return isRecent(seenAtMs, nowMs, withinMs);
}
