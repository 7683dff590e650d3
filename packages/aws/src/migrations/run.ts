/** One run: migrations one after the other, under one lease, with a report at the end. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import type { Write } from "@zae-limiter/limiter/storage/item-store.ts";
import type { ScanStore } from "@zae-limiter/limiter/storage/scan-store.ts";
import { KnownNamespaces } from "./known-namespaces.ts";
import type { Migration, Rule } from "./migration.ts";
import { MigrationError, MigrationRunningError } from "./migration-error.ts";
import {
  type Checkpoint,
  type Direction,
  MigrationLease,
  type MigrationState,
} from "./migration-state.ts";
import { Pass } from "./pass.ts";
import { readTableVersion, versionWrite } from "./table-version.ts";

/** One migration, in one of its directions. */
export interface Step {
  readonly migration: Migration;
  readonly direction: Direction;
  /** The version of the table afterwards. */
  readonly versionAfter: string;
}

/** How far a run has come. */
export interface MigrationProgress {
  /** The version that is being reached, or left on the way back. */
  readonly migration: string;
  /** From 1. */
  readonly position: number;
  /** How many migrations run. */
  readonly of: number;
  /** Number of items that were read. */
  readonly scanned: number;
  /** Items that were changed. */
  readonly changed: number;
}

/** Result of one migration, earlier runs that broke off included. */
export interface MigrationOutcome {
  /** The schema version that it leads to. */
  readonly version: string;
  /** The change in a sentence. */
  readonly description: string;
  /** Whether it reached the end of the table. */
  readonly completed: boolean;
  /** Number of items that were read. */
  readonly scanned: number;
  /** Items that were changed. */
  readonly changed: number;
  /** How many items were changed, by what was changed about them. */
  readonly changes: Readonly<Record<string, number>>;
}

export interface RunContext {
  readonly store: ScanStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly dryRun: boolean;
  readonly updatedBy: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: MigrationProgress) => void) | undefined;
}

/** Takes the lease, reads what is left to do, and does it. Stops at the first failure. */
export async function runSteps(
  context: RunContext,
  stepsNow: (state: MigrationState) => Promise<readonly Step[]>,
): Promise<MigrationOutcome[]> {
  const lease = await MigrationLease.take(context.store, context);
  const outcomes: MigrationOutcome[] = [];
  let current = "";
  try {
    const steps = await stepsNow(lease.state);
    for (const [index, step] of steps.entries()) {
      current = step.migration.version;
      const outcome = await runStep(context, lease, step, {
        position: index + 1,
        of: steps.length,
      });
      outcomes.push(outcome);
      if (!outcome.completed) {
        await lease.release();
        return outcomes;
      }
    }
    if (steps.length === 0) await context.store.transact([lease.ending()]);
    return outcomes;
  } catch (cause) {
    if (cause instanceof MigrationRunningError) throw cause;
    // The cause of the failure may prevent this as well; then the lease expires by itself.
    await lease.release().catch(() => undefined);
    throw new MigrationError(
      `The migration to ${current} broke off: ${(cause as Error).message}. ` +
        "Finished changes stay, and the next run continues from there",
      { migration: current, applied: outcomes.map(({ version }) => version), cause },
    );
  }
}

async function runStep(
  context: RunContext,
  lease: MigrationLease,
  step: Step,
  place: { readonly position: number; readonly of: number },
): Promise<MigrationOutcome> {
  const { migration } = step;
  const { store, clock } = context;
  const table = { store, clock, namespaces: await KnownNamespaces.read(store) };
  const checkpoint = beginning(lease.state.checkpoint, step);
  await lease.save(checkpoint);
  // First on the way back, otherwise last: a table never claims a version that it has not reached.
  if (step.direction === "back") await say(context, step, []);
  const pass = new Pass(table, rulesOf(step), lease, checkpoint);
  const completed = await pass.run({
    signal: context.signal,
    onCheckpoint: ({ scanned, changes }) =>
      context.onProgress?.({
        migration: migration.version,
        ...place,
        scanned,
        changed: total(changes),
      }),
  });
  const isLast = place.position === place.of;
  const state = isLast ? lease.ending() : lease.forNextStep();
  if (completed) await say(context, step, [state]);
  const { scanned, changes } = pass.checkpoint;
  const { version, description } = migration;
  return { version, description, completed, scanned, changed: total(changes), changes };
}

/** Returns the checkpoint of the same step, or that of its beginning. */
function beginning(saved: Checkpoint | undefined, { migration, direction }: Step): Checkpoint {
  if (saved?.migration === migration.version && saved.direction === direction) return saved;
  return { migration: migration.version, direction, cursor: undefined, scanned: 0, changes: {} };
}

/** Writes the version and the state of the run: both or none. */
async function say(context: RunContext, step: Step, state: readonly Write[]): Promise<void> {
  const { store, clock, updatedBy } = context;
  const version = await readTableVersion(store);
  const result = await store.transact([
    versionWrite(version, step.versionAfter, clock(), updatedBy),
    ...state,
  ]);
  if (result.ok) return;
  if (result.failures.has(1)) throw new MigrationRunningError(undefined, undefined);
  throw new Error("another client has changed the version record");
}

function rulesOf({ migration, direction }: Step): readonly Rule[] {
  return direction === "up" ? migration.rules : (migration.rollback ?? []);
}

/** Returns how many items all rules have changed. */
export function total(changes: Readonly<Record<string, number>>): number {
  return Object.values(changes).reduce((sum, count) => sum + count, 0);
}
