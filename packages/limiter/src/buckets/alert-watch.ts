/**
 * Watches the use of limits that have alerts. A process that sees that a percentage is reached
 * writes its record, on condition that there is none: one in a period, whatever the number of
 * processes. One that ends before it has written leaves that to the next call that sees the use.
 *
 * The balances that a call was answered with decide, without a request, unless other parts of the
 * bucket are elsewhere: other shards, or a correction that was answered without balances. Then all
 * shards are read and summed, at most once a second. Shards that this process has seen are summed
 * only when one of them has used its share: where all together have, at least one has.
 */

import { boundedMap } from "../base/bounded-map.ts";
import type { Timer } from "../base/time.ts";
import { ceilDiv, floorDiv, mulAddDiv } from "../core/integers.ts";
import type { Limit } from "../domain/limit.ts";
import { type Alert, alertId } from "../records/alerts/alert-item.ts";
import { writeAlert } from "../records/alerts/alerts.ts";
import { type BucketName, bucketId } from "../records/keys.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { SeenShard } from "./bucket-consumer.ts";
import type { BucketStore } from "./bucket-store.ts";
import type { AlertWarning } from "./bucket-warning.ts";
import {
  type Adjustment,
  type BucketConfig,
  isWatched,
  type Leg,
  type LegOutcome,
  type SeenPeriod,
  UNLINKED,
} from "./leg.ts";
import { startOf } from "./periods.ts";

const SUM_EVERY_MS = 1000;
const REMEMBERED_MAX = 10_000;

export interface AlertWatchOptions {
  readonly timer: Timer;
  /** Called once for each alert, in the process that has written it. */
  readonly onAlert: (alert: Alert) => void;
  /** Called when an alert could not be written; the next call that sees the use tries again. */
  readonly onWarning: (warning: AlertWarning) => void;
}

/** A bucket and the limits that are watched in it. */
interface Watched extends BucketName {
  readonly config: BucketConfig;
}

/** The percentages of a period that are written, as far as this process knows. */
interface KnownAlerts {
  readonly endMs: number;
  readonly percents: Set<number>;
}

export class AlertWatch {
  readonly #context: RecordContext;
  readonly #buckets: BucketStore;
  readonly #options: AlertWatchOptions;
  readonly #known = boundedMap<KnownAlerts>(REMEMBERED_MAX);
  /** When buckets were summed last, by the timer. */
  readonly #summedMs = boundedMap<number>(REMEMBERED_MAX);
  /** Buckets that are summed once their second is over. */
  readonly #due = new Map<string, Watched>();
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(context: RecordContext, buckets: BucketStore, options: AlertWatchOptions) {
    this.#context = context;
    this.#buckets = buckets;
    this.#options = options;
  }

  /** Writes the alerts that a grant makes due. */
  granted(legs: readonly Leg[], outcomes: readonly LegOutcome[]): void {
    for (let at = 0; at < legs.length; at += 1) {
      const leg = legs[at] as Leg;
      if (!isWatched(leg)) continue;
      const { balancesMilli, periods, shownAtMs } = outcomes[at] as LegOutcome;
      if (shownAtMs === undefined) this.#writeDue(leg, { balancesMilli, periods });
      else this.#compare(leg);
    }
  }

  /** Writes the alerts that a correction makes due, once it is written. */
  adjusted({ entityId, resource, config, deltasMilli }: Adjustment): void {
    if (deltasMilli.some((delta) => delta > 0)) this.#compare({ entityId, resource, config });
  }

  /** Waits until everything that was seen is written. */
  async written(): Promise<void> {
    while (this.#due.size > 0 || this.#running.size > 0) {
      for (const id of [...this.#due.keys()]) this.#sumDue(id);
      await Promise.all(this.#running);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.written();
  }

  /** Decides from the shards that this process has seen, or reads all of them. */
  #compare(watched: Watched): void {
    const shards = this.#buckets.lastSeen?.(watched, watched.config) ?? [];
    const [first] = shards;
    if (first !== undefined && first.shardCount === 1) this.#writeDue(watched, first);
    else if (shards.length === 0 || shards.some((shard) => this.#dueOf(watched, shard).length > 0))
      this.#sum(watched);
  }

  /** Reads and sums the shards of a bucket; within a second of the last time, after it. */
  #sum(watched: Watched): void {
    const id = bucketId(watched);
    if (this.#due.has(id)) return;
    const { timer } = this.#options;
    const lastMs = this.#summedMs.get(id) ?? Number.NEGATIVE_INFINITY;
    const waitMs = lastMs + SUM_EVERY_MS - timer.nowMs();
    this.#due.set(id, watched);
    if (waitMs <= 0) this.#sumDue(id);
    else void timer.sleep(waitMs, this.#closing.signal, true).then(() => this.#sumDue(id));
  }

  #sumDue(id: string): void {
    const watched = this.#due.get(id);
    if (watched === undefined) return;
    this.#due.delete(id);
    this.#summedMs.set(id, this.#options.timer.nowMs());
    const leg = { ...watched, amountsMilli: [], link: UNLINKED, linkIsFresh: false };
    this.#run(watched, async () => {
      const { balancesMilli, periods } = await this.#buckets.read([leg]);
      const [balances = []] = balancesMilli;
      this.#writeDue(watched, { balancesMilli: balances, periods: periods?.[0] });
    });
  }

  /** Writes the alerts that are due, the lowest first. */
  #writeDue(watched: Watched, seen: SeenShard): void {
    for (const { limit, percent, usedMilli, period } of this.#dueOf(watched, seen)) {
      const known = this.#knownIn(watched, limit, period.endMs);
      // Calls that follow at once must not write it too.
      known.percents.add(percent);
      const alert = this.#alertOf(watched, limit, percent, usedMilli, period);
      this.#run(watched, () => this.#write(alert, known));
    }
  }

  async #write(alert: Alert, known: KnownAlerts): Promise<void> {
    try {
      if (await writeAlert(this.#context, alert)) this.#options.onAlert(alert);
    } catch (cause) {
      known.percents.delete(alert.percent);
      throw cause;
    }
  }

  /** Returns the percentages that are reached and, as far as is known, not written. */
  #dueOf(watched: Watched, { balancesMilli, periods }: SeenShard) {
    return watched.config.limits.flatMap((limit, at) => {
      const period = periods?.[at];
      if (limit.alerts.length === 0 || period === undefined) return [];
      const usedMilli = period.grantedMilli - (balancesMilli[at] ?? 0);
      if (usedMilli <= 0) return [];
      const { percents } = this.#knownIn(watched, limit, period.endMs);
      return limit.alerts
        .filter((percent) => !percents.has(percent))
        .filter((percent) => usedMilli >= mulAddDiv(period.grantedMilli, percent, 99, 100))
        .map((percent) => ({ limit, percent, usedMilli, period }));
    });
  }

  #knownIn(watched: Watched, { name }: Limit, endMs: number): KnownAlerts {
    const id = `${bucketId(watched)}#${name}`;
    const known = this.#known.get(id);
    if (known !== undefined && known.endMs === endMs) return known;
    const made = { endMs, percents: new Set<number>() };
    this.#known.set(id, made);
    return made;
  }

  #alertOf(
    { entityId, resource }: Watched,
    limit: Limit,
    percent: number,
    usedMilli: number,
    { endMs, grantedMilli }: SeenPeriod,
  ): Alert {
    const name = { entityId, resource, limitName: limit.name, periodEndMs: endMs, percent };
    return {
      id: alertId(this.#context.namespaceId, name),
      ...name,
      limit: String(limit),
      used: ceilDiv(usedMilli, 1000),
      granted: floorDiv(grantedMilli, 1000),
      periodStartMs: startOf(limit.rule as NonNullable<Limit["rule"]>, endMs),
      atMs: this.#context.clock(),
    };
  }

  /** Runs in the background; writes of the same percentages go one after the other. */
  #run({ entityId, resource }: Watched, work: () => Promise<void>): void {
    const before = [...this.#running].at(-1) ?? Promise.resolve();
    const running = before.then(work).catch((cause: unknown) => {
      this.#options.onWarning({ kind: "alert_failed", entityId, resource, cause });
    });
    this.#running.add(running);
    void running.then(() => this.#running.delete(running));
  }
}
