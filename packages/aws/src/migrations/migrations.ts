/** Opens a table and migrates it to the schema of this version, or back: for `upgrade`. */

import { type Random, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { type Clock, systemClock } from "@zae-limiter/limiter/base/time.ts";
import { checkFields } from "@zae-limiter/limiter/domain/check.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { checkOpenOptions, parseStoreUrl } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { checkScannable, type ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";
import { INDEX_NAMES } from "@zae-limiter/limiter/storage/table.ts";
import { MigrationError } from "./migration-error.ts";
import { type MigrationState, readState } from "./migration-state.ts";
import { openScannable } from "./open-scannable.ts";
import { OverlayStore } from "./overlay-store.ts";
import { isAfter, migrationsBack, migrationsBetween } from "./registry.ts";
import {
  type MigrationOutcome,
  type MigrationProgress,
  type RunContext,
  runSteps,
  type Step,
  total,
} from "./run.ts";
import { readTableVersion } from "./table-version.ts";

export type { MigrationProgress } from "./run.ts";

/** A table, whatever its version. */
export interface OpenTable {
  /** The items of the table. */
  readonly store: ScanStore;
  /** Closes the connection. */
  close(): Promise<void>;
}

/** A migration that has not run yet. */
export interface PendingMigration {
  /** The schema version that it leads to. */
  readonly version: string;
  /** The change in a sentence. */
  readonly description: string;
  /** Whether `rollbackMigrations` can take it back. */
  readonly reversible: boolean;
}

/** The migrations that an upgrade of a table would run. */
export interface MigrationPlan {
  /** The version that the table has recorded; `undefined` without a record. */
  readonly schemaVersion: string | undefined;
  /** The schema version of this client. */
  readonly targetVersion: string;
  /** In the order they will run; none when the table is up to date or newer than this client. */
  readonly pending: readonly PendingMigration[];
  /** A run that did not finish; the next run continues from there. */
  readonly interrupted?: {
    readonly migration: string;
    readonly startedAt: string;
    readonly updatedAt: string;
    readonly scanned: number;
    readonly changed: number;
  };
}

/** How migrations run. */
export interface RunOptions {
  /** Does everything, but writes nothing. */
  readonly dryRun?: boolean;
  /** Receives how far a migration is. */
  readonly onProgress?: (progress: MigrationProgress) => void;
  /** Stops at the next checkpoint. The next run goes on from there. */
  readonly signal?: AbortSignal;
  /** Goes into the version record; `client:` and our version when absent. */
  readonly updatedBy?: string;
  /** Epoch milliseconds; for tests. */
  readonly clock?: Clock;
  /** Numbers in [0, 1); for tests. */
  readonly random?: Random;
}

/** Result of a run of migrations. */
export interface MigrationReport {
  /** Whether it was a trial that wrote nothing. */
  readonly dryRun: boolean;
  /** False when the run was stopped. */
  readonly completed: boolean;
  /** The schema version before the run. */
  readonly fromVersion: string | undefined;
  /** The schema version after the run. */
  readonly toVersion: string;
  /** Each migration that ran. */
  readonly migrations: readonly MigrationOutcome[];
}

const RUN_OPTIONS = [
  "dryRun",
  "onProgress",
  "signal",
  "updatedBy",
  "clock",
  "random",
] as const satisfies readonly (keyof RunOptions)[];

/**
 * Opens a table by its address. `Repository.open` refuses a table that is too old; this one takes
 * it as it is.
 *
 * @example
 * ```ts
 * import { openTable, planMigrations } from 'zae-limiter/infra';
 * const table = await openTable('memory:');
 * const { schemaVersion } = await planMigrations(table.store);
 * console.log(schemaVersion); // undefined
 * await table.close();
 * ```
 */
export async function openTable(url: string, options: DynamoOptions = {}): Promise<OpenTable> {
  const location = parseStoreUrl(url);
  checkOpenOptions(options, location);
  const { store } = await openScannable(location, options);
  return { store, close: () => store.close() };
}

/**
 * Returns what a run would do. Reads three items. Throws `IncompatibleSchemaError` where the layout
 * is older than 0.9.0: the Python library upgrades such a table.
 *
 * @example
 * ```ts
 * import { openTable, planMigrations } from 'zae-limiter/infra';
 * const table = await openTable('memory:');
 * const { pending } = await planMigrations(table.store);
 * console.log(pending.map(({ version }) => version).join(' ')); // 0.11.0
 * await table.close();
 * ```
 */
export async function planMigrations(store: ItemStore): Promise<MigrationPlan> {
  const state = await readState(store);
  const { stored, effective } = await readTableVersion(store);
  const pending = migrationsBetween(effective).map(({ version, description, rollback }) => ({
    version,
    description,
    reversible: rollback !== undefined,
  }));
  const plan = { schemaVersion: stored, targetVersion: SCHEMA_VERSION, pending };
  if (state?.checkpoint === undefined) return plan;
  const { startedAt, updatedAt, checkpoint } = state;
  const { migration, scanned, changes } = checkpoint;
  const interrupted = { migration, startedAt, updatedAt, scanned, changed: total(changes) };
  return { ...plan, interrupted };
}

/**
 * Brings the table to the schema of this version. Nothing happens when it has that already.
 *
 * @example
 * ```ts
 * import { openTable, runMigrations } from 'zae-limiter/infra';
 * const table = await openTable('memory:');
 * const { completed, toVersion } = await runMigrations(table.store, { dryRun: true });
 * console.log(completed, toVersion); // true 0.11.0
 * await table.close();
 * ```
 */
export async function runMigrations(
  store: ScanStore,
  options: RunOptions = {},
): Promise<MigrationReport> {
  checkFields("options", options, RUN_OPTIONS);
  const plan = await planMigrations(store);
  const context = contextOf(store, options);
  const steps = async (): Promise<Step[]> => {
    const { effective } = await readTableVersion(context.store);
    return migrationsBetween(effective).map((migration) => ({
      migration,
      direction: "up",
      versionAfter: migration.version,
    }));
  };
  const isIdle = plan.pending.length === 0 && plan.interrupted === undefined;
  if (!isIdle) await checkIndexes(store);
  const migrations = isIdle ? [] : await runSteps(context, steps);
  return report(context, plan.schemaVersion, SCHEMA_VERSION, migrations);
}

/**
 * Takes migrations back until the table has an older version. Refused unless all of them can be.
 *
 * @example
 * ```ts
 * import { openTable, rollbackMigrations, runMigrations } from 'zae-limiter/infra';
 * const table = await openTable('memory:');
 * await runMigrations(table.store);
 * const { fromVersion, toVersion } = await rollbackMigrations(table.store, { to: '0.10.0' });
 * console.log(fromVersion, toVersion); // 0.11.0 0.10.0
 * await table.close();
 * ```
 */
export async function rollbackMigrations(
  store: ScanStore,
  { to, ...options }: RunOptions & { readonly to: string },
): Promise<MigrationReport> {
  checkFields("options", options, RUN_OPTIONS);
  const context = contextOf(store, options);
  const between = async (state: MigrationState | undefined) => {
    const version = await readTableVersion(context.store);
    // The version is taken back first, so the state of an interrupted run is more exact.
    const left = state?.checkpoint?.direction === "back" ? state.checkpoint.migration : to;
    const from = isAfter(left, version.effective) ? left : version.effective;
    return { stored: version.stored, back: migrationsBack(from, to) };
  };
  const steps = async (state: MigrationState): Promise<Step[]> => {
    const { back } = await between(state);
    return back.map((migration, index) => ({
      migration,
      direction: "back",
      versionAfter: back[index + 1]?.version ?? to,
    }));
  };
  const { stored, back } = await between(await readState(store));
  const migrations = back.length === 0 ? [] : await runSteps(context, steps);
  return report(context, stored, to, migrations);
}

/**
 * Refuses a table that lacks an index, in which migrated records could not be found. The stack of a
 * table that is older than its layout may not have all of them.
 */
async function checkIndexes(store: ItemStore): Promise<void> {
  for (const index of INDEX_NAMES) {
    try {
      for await (const _ of store.query({ index, partition: RESERVED_NAMESPACE, limit: 1 })) break;
    } catch (cause) {
      if (cause instanceof RateLimiterUnavailable || !(cause instanceof InfrastructureError)) {
        throw cause;
      }
      throw new MigrationError(
        `The index ${index} cannot be read: ${cause.message}. If the table lacks it, run ` +
          "zae-limiter stack deploy, which adds it to a stack (or aws dynamodb update-table); if it was " +
          "just added, wait until it is filled; nothing was changed",
        { migration: SCHEMA_VERSION, cause },
      );
    }
  }
}

function contextOf(store: ScanStore, options: RunOptions): RunContext {
  const { dryRun = false, onProgress, signal, updatedBy } = options;
  checkScannable(store);
  return {
    store: dryRun ? new OverlayStore(store) : store,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    dryRun,
    updatedBy,
    signal,
    onProgress,
  };
}

function report(
  { dryRun }: RunContext,
  fromVersion: string | undefined,
  toVersion: string,
  migrations: readonly MigrationOutcome[],
): MigrationReport {
  const completed = migrations.every((outcome) => outcome.completed);
  return { dryRun, completed, fromVersion, toVersion, migrations };
}
