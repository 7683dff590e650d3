/**
 * The aggregator: change records in, writes out.
 *
 * A batch is a piece of one shard of a stream, in order. It is folded into snapshots, which are
 * written first, then statements of periods that it shows closed; then buckets that it shows at
 * work are kept in shape, and audit events that left the table are archived. Failures are reported
 * record by record. Delivering a record again does no harm, so the caller delivers everything again
 * from the first failure on. A record that can never succeed is skipped at once with a warning: it
 * would block the stream for a day.
 *
 * Records from before the deletion of their entity, or of a namespace that is purged, are not
 * counted. The marks of deletions are read before the snapshots are written and once more after:
 * a mark that appears in between means that the deletion may not have seen what was just written.
 */

import { inParallel } from "@zae-limiter/limiter/base/bounded.ts";
import { type Clock, systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  DYNAMODB_TRAITS,
  type TableTraits,
} from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import { DamagedRecordError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { periodKey, periodPartChange } from "@zae-limiter/limiter/records/usage/period-item.ts";
import { markAttribute, usageKey } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { numberAt } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { type ArchiveSink, archiveObjects, removedEvents } from "./audit-archive.ts";
import { type BucketActivity, bucketActivity } from "./bucket-activity.ts";
import { BucketUpkeep, type ShardSplitter } from "./bucket-upkeep.ts";
import { type Closing, closingsIn } from "./closed-periods.ts";
import { type AggregatorCounters, counterFields } from "./counters.ts";
import { Deletions, type Owner } from "./deletions.ts";
import { errorFields, type Log, type LogFields } from "./log.ts";
import { SnapshotWriter } from "./snapshot-writer.ts";
import type { StreamChange } from "./stream-change.ts";
import { foldUsage, type SnapshotTally } from "./usage-fold.ts";

export const RETENTION_DAYS = 90;
const WRITES_AT_ONCE = 16;
/** Errors of a record that fails however often it is delivered; other records may succeed. */
const FINAL_ERRORS = [ValidationError, DamagedRecordError, RangeError] as const;
/** Time reserved for reporting the remaining records when the work is stopped. */
const TIME_LEFT_MS_MIN = 2000;

export interface AggregatorOptions {
  readonly store: ItemStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly timer?: Timer | undefined;
  /** The windows that usage is counted by; all when absent. */
  readonly windows?: readonly WindowType[] | undefined;
  /** How long a snapshot is kept after its window; 90 when absent. */
  readonly retentionDays?: number | undefined;
  /** Receives removed audit events; when absent, they are not kept. */
  readonly archive?: ArchiveSink | undefined;
  readonly splitter?: ShardSplitter | undefined;
  /** Traits of the store; those of a table on DynamoDB when absent. */
  readonly traits?: TableTraits | undefined;
}

/** The outcome of a batch. */
interface BatchReport {
  readonly counters: AggregatorCounters;
  /** Records to deliver again, in the order of the batch. */
  readonly failedIds: readonly string[];
}

export class Aggregator {
  readonly #options: AggregatorOptions;
  readonly #writer: SnapshotWriter;
  readonly #upkeep: BucketUpkeep;
  readonly #retentionDays: number;

  constructor(options: AggregatorOptions) {
    const { store, clock, splitter, timer = systemTimer, traits = DYNAMODB_TRAITS } = options;
    this.#options = options;
    const { retentionDays = RETENTION_DAYS } = options;
    this.#retentionDays = retentionDays;
    this.#writer = new SnapshotWriter({ store, timer, retentionDays });
    this.#upkeep = new BucketUpkeep({ store, clock, splitter, traits });
  }

  /** Reports work that cannot begin within `timeLeftMs` as failed, so that it is not cut off. */
  async process(
    changes: readonly StreamChange[],
    timeLeftMs: () => number = () => Number.POSITIVE_INFINITY,
  ): Promise<BatchReport> {
    const batch = new Batch(changes, this.#options.log, timeLeftMs);
    const { tallies, malformed } = foldUsage(changes, this.#options.windows ?? WINDOW_TYPES);
    batch.skip(malformed, "a change of an item that is not a bucket was skipped");
    const activities = bucketActivity(changes);
    const closings = closingsIn(changes);
    const owners = [
      ...tallies.map(({ subject }) => subject),
      ...activities.map(({ name }) => name),
      ...closings.map(({ subject }) => subject),
    ];
    const deletions = await this.#deletions(batch, owners);
    const snapshots = await this.#count(batch, tallies, deletions);
    await this.#state(batch, closings, deletions);
    const live = activities.filter(
      ({ name, item }) => (numberAt(item, "rf") ?? 0) > deletions.untilMs(name),
    );
    const { refills, splits } = await this.#keepUp(batch, live);
    await this.#removeLate(batch, activities, deletions);
    const archived = await this.#archive(batch);
    const newestMs = changes.reduce((newest, { atMs }) => Math.max(newest, atMs), 0);
    const counters: AggregatorCounters = {
      records: changes.length,
      snapshots,
      refills,
      splits,
      archived,
      lagMs: changes.length === 0 ? 0 : Math.max(0, this.#options.clock() - newestMs),
      failures: batch.failures,
      skipped: batch.skipped,
    };
    if (changes.length > 0) {
      this.#options.log("debug", "batch processed", counterFields(counters));
    }
    return { counters, failedIds: batch.failedIds };
  }

  /** Reads the marks before the first write; failing that, they are read after the last one. */
  async #deletions(batch: Batch, owners: readonly Owner[]): Promise<Deletions> {
    let read = Deletions.NONE;
    await batch.attempt("the marks of deletions could not be read", [], async () => {
      read = await Deletions.read(this.#options.store, owners, { consistent: false });
    });
    return read;
  }

  async #count(
    batch: Batch,
    tallies: readonly SnapshotTally[],
    deletions: Deletions,
  ): Promise<number> {
    const written: SnapshotTally[] = [];
    await inParallel(tallies, WRITES_AT_ONCE, async (tally) => {
      const work = async () => {
        const isCounted = await this.#writer.write(tally, deletions.untilMs(tally.subject));
        if (isCounted) written.push(tally);
      };
      await batch.attempt("a snapshot could not be written", idsOf(tally), work, about(tally));
    });
    await this.#recount(batch, written, deletions);
    return written.length;
  }

  /** Writes the statements of closed periods, each shard's part of them once. */
  async #state(batch: Batch, closings: readonly Closing[], deletions: Deletions): Promise<void> {
    const live = closings.filter(({ subject, baseMs }) => baseMs > deletions.untilMs(subject));
    await inParallel(live, WRITES_AT_ONCE, async ({ id, subject, shard, period }) => {
      const key = periodKey(subject, period);
      const message = "a statement of a period could not be written";
      const mark = markAttribute(shard);
      const change = periodPartChange(subject, period, mark, this.#retentionDays);
      const write = async () => {
        await this.#options.store.update(key, change, [{ is: "absent", name: mark }]);
      };
      await batch.attempt(message, [id], write, { pk: key.PK, sk: key.SK });
    });
  }

  /** Corrects what was written while its entity or namespace was deleted. */
  async #recount(
    batch: Batch,
    written: readonly SnapshotTally[],
    before: Deletions,
  ): Promise<void> {
    if (written.length === 0) return;
    const message = "a snapshot of a deleted entity could not be corrected";
    await batch.attempt(message, written.flatMap(idsOf), async () => {
      const owners = written.map(({ subject }) => subject);
      const now = await Deletions.read(this.#options.store, owners, { consistent: true });
      for (const tally of written) {
        const untilMs = now.untilMs(tally.subject);
        if (untilMs > before.untilMs(tally.subject)) await this.#writer.recount(tally, untilMs);
      }
    });
  }

  async #keepUp(
    batch: Batch,
    activities: readonly BucketActivity[],
  ): Promise<{ refills: number; splits: number }> {
    let refills = 0;
    let splits = 0;
    await inParallel(activities, WRITES_AT_ONCE, async (activity) => {
      const id = [activity.lastId];
      const worked = await batch.attempt("a bucket could not be split", id, async () => {
        splits += await this.#upkeep.split(activity);
      });
      if (worked === "given up") return;
      // The next batch shows the bucket as it is by then, so there is nothing to deliver again.
      await batch.attempt("a bucket could not be refilled", [], async () => {
        if (await this.#upkeep.refill(activity)) refills += 1;
      });
    });
    return { refills, splits };
  }

  /** Removes buckets of purged namespaces: a client that did not know created them after it. */
  async #removeLate(
    batch: Batch,
    activities: readonly BucketActivity[],
    deletions: Deletions,
  ): Promise<void> {
    const late = activities.filter(({ name }) => deletions.isPurged(name));
    await inParallel(late, WRITES_AT_ONCE, async ({ item: { PK, SK }, lastId }) => {
      const message = "a bucket of a purged namespace could not be removed";
      await batch.attempt(message, [lastId], async () => {
        await this.#options.store.delete({ PK, SK });
      });
    });
  }

  /**
   * Archives the events before the first failure: the rest of the batch is delivered again. If one
   * event cannot be archived, all of them are delivered again.
   */
  async #archive(batch: Batch): Promise<number> {
    const { archive } = this.#options;
    if (archive === undefined) return 0;
    const { events, malformed } = removedEvents(batch.untilFailure());
    batch.skip(malformed, "a removed audit item that is not an event was skipped");
    const [first] = events;
    if (first === undefined) return 0;
    let archived = 0;
    await batch.attempt("audit events could not be archived", [first.id], async () => {
      const objects = archiveObjects(events);
      await inParallel(objects, WRITES_AT_ONCE, ({ key, body }) => archive.put(key, body));
      archived = events.length;
    });
    return archived;
  }
}

/** A batch in progress, and its failed records. */
class Batch {
  readonly changes: readonly StreamChange[];
  readonly #log: Log;
  readonly #timeLeftMs: () => number;
  readonly #failed = new Set<string>();
  failures = 0;
  /** Records that can never be counted. */
  skipped = 0;

  constructor(changes: readonly StreamChange[], log: Log, timeLeftMs: () => number) {
    this.changes = changes;
    this.#log = log;
    this.#timeLeftMs = timeLeftMs;
  }

  get failedIds(): string[] {
    if (this.#failed.size === 0) return [];
    return this.changes.map(({ id }) => id).filter((id) => this.#failed.has(id));
  }

  /** Returns the records before the first that has to be delivered again. */
  untilFailure(): readonly StreamChange[] {
    if (this.#failed.size === 0) return this.changes;
    const first = this.changes.findIndex(({ id }) => this.#failed.has(id));
    return this.changes.slice(0, first);
  }

  /**
   * Runs work on some records: when it fails, they are reported and the rest goes on. A request the
   * store calls invalid stays invalid; any other failure may pass, so it is tried again.
   */
  async attempt(
    message: string,
    ids: readonly string[],
    work: () => Promise<void>,
    fields: LogFields = {},
  ): Promise<"done" | "failed" | "given up"> {
    try {
      if (this.#timeLeftMs() < TIME_LEFT_MS_MIN) throw new Error("there is no time left");
      await work();
      return "done";
    } catch (error) {
      this.failures += 1;
      const isFinal = FINAL_ERRORS.some((kind) => error instanceof kind);
      if (isFinal) this.skipped += ids.length;
      else for (const id of ids) this.#failed.add(id);
      this.#log("error", isFinal ? `${message}, and never can be: it is given up` : message, {
        records: ids.length,
        first_sequence: ids[0],
        last_sequence: ids.at(-1),
        ...fields,
        ...errorFields(error),
      });
      return isFinal ? "given up" : "failed";
    }
  }

  /** Skips records that can never be processed: they would only block the stream. */
  skip(changes: readonly StreamChange[], message: string): void {
    for (const { key, id } of changes) {
      this.failures += 1;
      this.skipped += 1;
      this.#log("warning", message, { pk: key.PK, sk: key.SK, sequence: id });
    }
  }
}

function about({ subject, type, startMs }: SnapshotTally): LogFields {
  const { PK: pk, SK: sk } = usageKey(subject, type, startMs);
  return { pk, sk };
}

function idsOf(tally: SnapshotTally): string[] {
  return tally.shards.flatMap(({ entries }) => entries.map(({ id }) => id));
}
