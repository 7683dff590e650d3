/** Runs the aggregator in a process of the caller, on any store. */

import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { type Clock, systemTimer } from "@zae-limiter/limiter/base/time.ts";
import {
  DYNAMODB_TRAITS,
  NO_TRAITS,
} from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  checkByTable,
  type Filled,
  FUNCTION,
  OBJECT,
  type OptionTable,
  oneOf,
  whole,
} from "@zae-limiter/limiter/domain/options.ts";
import { clockOf } from "@zae-limiter/limiter/repository/backend.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { tableOf } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { openBackend } from "@zae-limiter/limiter/repository/stores/open-backend.ts";
import {
  parseStoreUrl,
  type StoreLocation,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ChangeSource } from "@zae-limiter/limiter/storage/change-source.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { Aggregator } from "./aggregator.ts";
import type { ArchiveSink } from "./audit-archive.ts";
import type { AggregatorCounters } from "./counters.ts";
import { FolderArchive } from "./folder-archive.ts";
import { jsonLog, LOG_LEVELS, type LogLevel } from "./log.ts";
import { shardSource } from "./runner/shard-source.ts";
import { StreamRunner } from "./runner/stream-runner.ts";
import { S3Archive } from "./s3-archive.ts";
import { splitterOver } from "./splitter.ts";

/**
 * Options of an aggregator that runs in a process of the caller.
 *
 * @example
 * ```ts
 * import type { AggregatorRunOptions } from 'zae-limiter/aggregator';
 * const options: AggregatorRunOptions = { windows: ['daily'], archive: './audit' };
 * ```
 */
export interface AggregatorRunOptions {
  /** The windows by which usage is counted. Default: all. */
  readonly windows?: readonly WindowType[];
  /** How long a snapshot is kept after its window. Default 90. */
  readonly retentionDays?: number;
  /** A folder, or `s3://` and a bucket, for removed audit events. Default: not archived. */
  readonly archive?: string;
  /** A process that is silent for this long loses its shards to other processes. Default 10. */
  readonly leaseSeconds?: number;
  /** How long changes are gathered before they are written. Default 1000. */
  readonly batchMs?: number;
  /** The most changes that are gathered. Default 1000. */
  readonly batchSize?: number;
  /** How often the counters are logged. Default 60. */
  readonly reportSeconds?: number;
  /** Lines below this level are not logged. Default `info`. */
  readonly logLevel?: LogLevel;
  /** Takes the lines of the log, each a JSON object. Default: the standard output. */
  readonly write?: (line: string) => void;
  /** Stops the aggregator after the work in progress. */
  readonly signal?: AbortSignal;
  /** How to reach the store. */
  readonly connection?: DynamoOptions;
}

const OPTIONS = {
  windows: { check: checkWindows },
  retentionDays: { check: whole(1, 3650), default: 90 },
  archive: { check: checkArchive },
  leaseSeconds: { check: whole(1, 3600), default: 10 },
  batchMs: { check: whole(0, 300_000), default: 1000 },
  batchSize: { check: whole(1, 100_000), default: 1000 },
  reportSeconds: { check: whole(1, 86_400), default: 60 },
  logLevel: { check: oneOf(...LOG_LEVELS), default: "info" },
  write: { check: FUNCTION, default: (line) => void process.stdout.write(line) },
  signal: { check: OBJECT },
  connection: { check: OBJECT },
} as const satisfies OptionTable<AggregatorRunOptions>;

/** Options that are checked, with their defaults. */
type Settings = Filled<AggregatorRunOptions, typeof OPTIONS>;

const TIMEOUT_MS = 5000;
const WORKER_BYTES = 9;
const S3_SCHEME = "s3://";

/**
 * Follows a store until the signal stops it: counts usage on DynamoDB and on stores of your own,
 * keeps their buckets in shape, and archives audit events on every store. Several processes on one
 * table share the work. On memory and SQLite usage is counted by the limiter itself. Takes the
 * address of a store, or one that is open and stays so.
 *
 * @example
 * ```ts
 * import { runAggregator } from 'zae-limiter/aggregator';
 * const stop = new AbortController();
 * const running = runAggregator('memory:', { signal: stop.signal, write: () => {} });
 * stop.abort();
 * const { failures } = await running;
 * console.log(failures); // 0
 * ```
 */
export async function runAggregator(
  where: string | ItemStore,
  options: AggregatorRunOptions = {},
): Promise<AggregatorCounters> {
  if (typeof where === "string") return runAggregatorAt(parseStoreUrl(where), options);
  const settings = checkByTable(options, OPTIONS);
  const clock = clockOf(options.connection ?? {});
  const opened = { store: where, clock, changes: { by: "feed", store: where } } as const;
  return follow(opened, undefined, settings);
}

/** Follows the store at a location until the signal stops it. */
export async function runAggregatorAt(
  location: StoreLocation,
  options: AggregatorRunOptions,
): Promise<AggregatorCounters> {
  const settings = checkByTable(options, OPTIONS);
  const connection = { timeoutMs: TIMEOUT_MS, ...options.connection };
  const table = tableOf(location);
  const region = table && (connection.region ?? table.region);
  const backend = await openBackend(location, connection);
  try {
    return await follow(backend, region, settings);
  } finally {
    await backend.store.close();
  }
}

/** A store that is open, as far as an aggregator needs it. */
interface FollowedStore {
  readonly store: ItemStore;
  readonly clock: Clock;
  readonly changes: ChangeSource;
}

async function follow(
  { store, clock, changes }: FollowedStore,
  region: string | undefined,
  settings: Settings,
): Promise<AggregatorCounters> {
  const { retentionDays, batchMs, batchSize, write, connection } = settings;
  const log = jsonLog({ clock, write, level: settings.logLevel });
  const timer = connection?.timer ?? systemTimer;
  const random = connection?.random ?? systemRandom;
  // Only a table on DynamoDB has a stream of shards.
  const isTable = changes.by === "shards";
  const aggregator = new Aggregator({
    store,
    clock,
    timer,
    log,
    retentionDays,
    windows: settings.windows,
    archive: archiveAt(settings.archive, region),
    splitter: isTable ? splitterOver({ store, clock, log, timer, random }) : undefined,
    traits: isTable ? DYNAMODB_TRAITS : NO_TRAITS,
  });
  const runner = new StreamRunner({
    aggregator,
    source: shardSource(changes),
    store,
    clock,
    timer,
    log,
    worker: randomToken(random, WORKER_BYTES),
    leaseMs: settings.leaseSeconds * 1000,
    batchMs,
    batchSize,
    reportMs: settings.reportSeconds * 1000,
  });
  return await runner.run(settings.signal ?? new AbortController().signal);
}

function checkWindows(field: string, value: unknown): void {
  const isKnown = (type: unknown) => WINDOW_TYPES.some((known) => known === type);
  if (Array.isArray(value) && value.length > 0 && value.every(isKnown)) return;
  const wrong: unknown = Array.isArray(value) ? value.find((type) => !isKnown(type)) : value;
  const reason = `expected some of ${WINDOW_TYPES.join(", ")}, got ${show(wrong)}`;
  throw new ValidationError(field, wrong, reason);
}

function checkArchive(field: string, place: unknown): void {
  const isFolder = typeof place === "string" && place !== "" && !place.includes("://");
  if (isFolder || (typeof place === "string" && bucketIn(place) !== undefined)) return;
  throw new ValidationError(field, place, `expected a folder or ${S3_SCHEME}<bucket>`);
}

/** Returns the bucket in `s3://bucket`; `undefined` for a folder. */
function bucketIn(place: string): string | undefined {
  return place.startsWith(S3_SCHEME) && place.length > S3_SCHEME.length
    ? place.slice(S3_SCHEME.length)
    : undefined;
}

function archiveAt(place: string | undefined, region: string | undefined): ArchiveSink | undefined {
  if (place === undefined) return undefined;
  const bucket = bucketIn(place);
  return bucket === undefined ? new FolderArchive(place) : new S3Archive({ bucket, region });
}
