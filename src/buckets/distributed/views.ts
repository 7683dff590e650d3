/**
 * What this client last saw of each bucket shard. A view is a hint, never a permission: it picks
 * the form of a write, whose conditions then decide.
 *
 * A limit that looks full may not be: others may have taken since. At a utilisation u it is not
 * full for about u of the time, whenever one looks, and this client's own image is too rare to
 * tell. So each view counts how often a limit that looked full was, and takes it for full when
 * that was right more often than not: then the lesser of u and 1 - u of the takes need a second
 * call. A limit that does not look full by what was seen needs no guess and teaches nothing.
 */

import { LRUCache } from "lru-cache";
import type { SeenBucket } from "./image.ts";

const VIEWS_MAX = 10_000;
/** The first sightings count evenly; later ones have at least this weight, so that habits change. */
const LEARNING_RATE_MIN = 0.02;

export interface View {
  /** `undefined`: there is no such item. */
  readonly bucket: SeenBucket | undefined;
  /** When a response showed it; views that were worked out here count as never seen. */
  readonly seenAtMs: number;
  /** Of when the balances are, whether they were seen or worked out. */
  readonly asOfMs: number;
}

/** How often a limit that looked full was full, of so many sightings. */
interface Habit {
  readonly fullShare: number;
  readonly sightings: number;
}

interface Entry {
  view: View | undefined;
  /** How often the view was begun anew, by what the store has shown or because it was void. */
  begun: number;
  readonly habits: Map<string, Habit>;
  /** Which of this client's own changes was the last that made the view void. */
  change: number;
}

/** Shows what a call that has begun has led to. */
export type Watch = (bucket: SeenBucket | undefined, nowMs: number) => View;

const NEVER = Number.NEGATIVE_INFINITY;
/** Without experience a limit that looks full is taken for full. */
const NO_HABIT: Habit = { fullShare: 1, sightings: 1 };

export class Views {
  /** Bounded by size, because a bound by count takes its room in advance, for every namespace. */
  readonly #entries = new LRUCache<string, Entry>({
    maxSize: VIEWS_MAX,
    sizeCalculation: () => 1,
  });
  #changes = 0;

  get(id: string): View | undefined {
    return this.#entries.get(id)?.view;
  }

  /** Which of this client's own changes was the last; 0 when there was none. */
  changeOf(id: string): number {
    return this.#entries.get(id)?.change ?? 0;
  }

  /** Whether a limit that looks full is more likely to be full than not. */
  trustsFull(id: string, limitName: string): boolean {
    return (this.#entries.get(id)?.habits.get(limitName) ?? NO_HABIT).fullShare >= 0.5;
  }

  /**
   * Call it before asking the store, and the result with the answer. What the store showed before
   * this client gave something back is no ground to refuse anything after it.
   */
  watch(id: string): Watch {
    const begun = this.#changes;
    return (bucket, nowMs) => {
      const entry = this.#entryOf(id);
      const late = entry.change > begun;
      const view = { bucket, seenAtMs: late ? NEVER : nowMs, asOfMs: nowMs };
      if (!late || entry.view === undefined) {
        entry.view = view;
        entry.begun += 1;
      }
      return view;
    };
  }

  /**
   * The item will look like this after a write whose response did not show it yet, so that calls
   * which start meanwhile count with it. Call the result with the amounts when nothing was written
   * after all.
   */
  expect(
    id: string,
    bucket: SeenBucket,
    balances: readonly { limitName: string; tokensMilli: number; remainder: number }[],
  ): (amountsMilli: ReadonlyMap<string, number>) => void {
    const limits = new Map(bucket.limits);
    for (const { limitName, tokensMilli, remainder } of balances) {
      const stored = limits.get(limitName);
      if (stored !== undefined) limits.set(limitName, { ...stored, tokensMilli, remainder });
    }
    const entry = this.#entryOf(id);
    const { view: before, begun } = entry;
    const assumed = assumedView(entry, { ...bucket, limits });
    entry.view = assumed;
    return (amountsMilli) => {
      // What the store has shown since, it has shown without.
      if (this.#entries.get(id) !== entry || entry.begun !== begun) return;
      const taken = balances.map(({ limitName }) => limitName);
      if (entry.view === assumed) entry.view = before;
      else if (entry.view !== undefined) entry.view = without(entry.view, taken, amountsMilli);
    };
  }

  /** What nobody has shown, but should be so. */
  assume(id: string, bucket: SeenBucket): void {
    const entry = this.#entryOf(id);
    entry.view = assumedView(entry, bucket);
    entry.begun += 1;
  }

  /** This client has given back or taken without being shown the result. */
  changed(id: string, deltasMilli: ReadonlyMap<string, number>): void {
    const entry = this.#entryOf(id);
    const bucket = entry.view?.bucket;
    this.#changes += 1;
    entry.change = this.#changes;
    if (bucket === undefined) {
      entry.view = undefined;
      return;
    }
    const limits = new Map(bucket.limits);
    for (const [name, delta] of deltasMilli) {
      const stored = limits.get(name);
      if (stored === undefined) continue;
      limits.set(name, { ...stored, tokensMilli: stored.tokensMilli - delta });
    }
    entry.view = { ...(entry.view as View), bucket: { ...bucket, limits }, seenAtMs: NEVER };
  }

  /** Remembers whether limits that looked full were. */
  learn(id: string, sightings: readonly { limitName: string; full: boolean }[]): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || sightings.length === 0) return;
    for (const { limitName, full } of sightings) {
      const known = entry.habits.get(limitName) ?? NO_HABIT;
      const weight = Math.max(LEARNING_RATE_MIN, 1 / (known.sightings + 1));
      entry.habits.set(limitName, {
        fullShare: known.fullShare + weight * ((full ? 1 : 0) - known.fullShare),
        sightings: known.sightings + 1,
      });
    }
  }

  /** What was seen is void; what was learned is not. */
  forget(id: string): void {
    this.#changes += 1;
    const entry = this.#entryOf(id);
    entry.view = undefined;
    entry.begun += 1;
    entry.change = this.#changes;
  }

  clear(): void {
    for (const id of [...this.#entries.keys()]) this.forget(id);
  }

  /** What is known of the shard, to be changed in place: a call looks it up a dozen times. */
  #entryOf(id: string): Entry {
    const known = this.#entries.get(id);
    if (known !== undefined) return known;
    const entry: Entry = { view: undefined, begun: 0, habits: new Map(), change: 0 };
    this.#entries.set(id, entry);
    return entry;
  }
}

function assumedView({ view }: Entry, bucket: SeenBucket): View {
  return {
    bucket,
    seenAtMs: NEVER,
    asOfMs: Math.max(view?.asOfMs ?? NEVER, bucket.refilledAtMs),
  };
}

/** The view without a take that has not been, where others that were not shown either count with it. */
function without(
  view: View,
  limitNames: readonly string[],
  amountsMilli: ReadonlyMap<string, number>,
): View {
  const { bucket } = view;
  if (bucket === undefined) return view;
  const limits = new Map(bucket.limits);
  for (const name of limitNames) {
    const stored = limits.get(name);
    if (stored === undefined) continue;
    const tokensMilli = stored.tokensMilli + (amountsMilli.get(name) ?? 0);
    limits.set(name, { ...stored, tokensMilli });
  }
  return { ...view, bucket: { ...bucket, limits } };
}
