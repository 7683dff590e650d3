/** Runs the aggregator as a process of one's own, on any store. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import {
  DYNAMODB_TRAITS,
  NO_TRAITS,
} from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import { checkFields, checkInteger, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
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
 * How an aggregator runs.
 *
 * @example
 * ```ts
 * import type { AggregatorRunOptions } from 'zae-limiter/aggregator';
 * const options: AggregatorRunOptions = { windows: ['daily'], archive: './audit' };
 * ```
 */
export interface AggregatorRunOptions {
  /** The windows usage is counted by; all when not given. */
  readonly windows?: readonly WindowType[];
  /** How long a snapshot is kept after its window. Default 90. */
  readonly retentionDays?: number;
  /** Where removed audit events go: a folder, or `s3://` and a bucket. Nowhere when not given. */
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

const RUN_FIELDS = [
  "windows",
  "retentionDays",
  "archive",
  "leaseSeconds",
  "batchMs",
  "batchSize",
  "reportSeconds",
  "logLevel",
  "write",
  "signal",
  "connection",
] as const satisfies readonly (keyof AggregatorRunOptions)[];

const DEFAULTS = {
  retentionDays: 90,
  leaseSeconds: 10,
  batchMs: 1000,
  batchSize: 1000,
  reportSeconds: 60,
} as const;
const RANGES: Readonly<Record<keyof typeof DEFAULTS, readonly [min: number, max: number]>> = {
  retentionDays: [1, 3650],
  leaseSeconds: [1, 3600],
  batchMs: [0, 300_000],
  batchSize: [1, 100_000],
  reportSeconds: [1, 86_400],
};
type Settings = Record<keyof typeof DEFAULTS, number>;

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
  const settings = checked(options);
  const clock = clockOf(options.connection ?? {});
  const opened = { store: where, clock, changes: { by: "feed", store: where } } as const;
  return follow(opened, undefined, options, settings);
}

/** Follows the store at a location until the signal stops it. */
export async function runAggregatorAt(
  location: StoreLocation,
  options: AggregatorRunOptions,
): Promise<AggregatorCounters> {
  const settings = checked(options);
  const connection = { timeoutMs: TIMEOUT_MS, ...options.connection };
  const table = tableOf(location);
  const region = table && (connection.region ?? table.region);
  const backend = await openBackend(location, connection);
  try {
    return await follow(backend, region, options, settings);
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
  options: AggregatorRunOptions,
  settings: Settings,
): Promise<AggregatorCounters> {
  const { write = (line: string) => void process.stdout.write(line), logLevel: level } = options;
  const log = jsonLog({ clock, write, ...defined({ level }) });
  const timer = options.connection?.timer ?? systemTimer;
  const random = options.connection?.random ?? systemRandom;
  const { retentionDays, batchMs, batchSize } = settings;
  // Only a table on DynamoDB has a stream of shards.
  const isTable = changes.by === "shards";
  const aggregator = new Aggregator({
    store,
    clock,
    timer,
    log,
    retentionDays,
    windows: options.windows,
    archive: archiveAt(options.archive, region),
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
  return await runner.run(options.signal ?? new AbortController().signal);
}

function checked(options: AggregatorRunOptions): Settings {
  checkFields("options", options, RUN_FIELDS);
  const { windows, logLevel } = options;
  const unknown = windows?.find((type) => !WINDOW_TYPES.includes(type));
  if (unknown !== undefined || windows?.length === 0) {
    const reason = `expected some of ${WINDOW_TYPES.join(", ")}, got ${show(unknown)}`;
    throw new ValidationError("windows", unknown, reason);
  }
  if (logLevel !== undefined && !LOG_LEVELS.includes(logLevel)) {
    const reason = `expected ${LOG_LEVELS.join(", ")}, got ${show(logLevel)}`;
    throw new ValidationError("logLevel", logLevel, reason);
  }
  const settings: Settings = { ...DEFAULTS };
  for (const [name, [min, max]] of Object.entries(RANGES) as [
    keyof typeof DEFAULTS,
    [number, number],
  ][]) {
    settings[name] = checkInteger(name, options[name] ?? DEFAULTS[name], min, max);
  }
  return settings;
}

function archiveAt(place: string | undefined, region: string | undefined): ArchiveSink | undefined {
  if (place === undefined) return undefined;
  if (place.startsWith(S3_SCHEME) && place.length > S3_SCHEME.length) {
    return new S3Archive({ bucket: place.slice(S3_SCHEME.length), region });
  }
  if (place !== "" && !place.includes("://")) return new FolderArchive(place);
  throw new ValidationError("archive", place, `expected a folder or ${S3_SCHEME}<bucket>`);
}
