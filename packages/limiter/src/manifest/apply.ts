/**
 * Brings what is stored to what a manifest declares, through the public calls:
 * each change is one transaction with its audit event, its registries and a new config version, and
 * live buckets follow.
 */

import { defined } from "../base/defined.ts";
import { RateLimiterUnavailable, ZaeLimiterError } from "../domain/errors/errors.ts";
import type { LimitRecords } from "../records/config/limits.ts";
import type { ChangeOptions, SwitchRecords } from "../records/config/switches.ts";
import type { RecordContext } from "../records/record-context.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { Repository } from "../repository/repository.ts";
import { ApplyTurn } from "./apply-turn.ts";
import { parentsOf } from "./entity-records.ts";
import { fingerprintOf } from "./fingerprint.ts";
import {
  checkFits,
  type ManagedContent,
  type ManagedRecord,
  readManaged,
  timestampOf,
} from "./managed-record.ts";
import {
  declarationsOf,
  distinctTargets,
  type LevelConfig,
  type Manifest,
  type Target,
  targetKey,
} from "./manifest.ts";
import { type LimitChange, type LimitPlan, planChanges } from "./plan.ts";
import { readLevels } from "./stored-levels.ts";

const WAIT_MS = 60_000;
/** A store that is down would be waited for once per change. */
const UNAVAILABLE_MAX = 3;

export interface ApplyOptions {
  /** The principal in the audit log. */
  readonly principal?: string;
  /** How long to wait for another apply; 60 seconds when absent. */
  readonly waitMs?: number;
  /** Stops between two changes; what was done is recorded. */
  readonly signal?: AbortSignal;
  /** Writes every declared entry, also those that are as declared, and stamps buckets again. */
  readonly full?: boolean;
  /** Called with each change when it is done or has failed. */
  readonly onChange?: (change: LimitChange, error?: ZaeLimiterError) => void;
}

/** How an apply went. Whatever failed or was skipped is in the next plan again. */
export interface ApplyResult {
  readonly plan: LimitPlan;
  readonly applied: readonly LimitChange[];
  readonly failed: readonly { readonly change: LimitChange; readonly error: ZaeLimiterError }[];
  /** Not attempted: the store was down, or the apply was stopped. */
  readonly skipped: readonly LimitChange[];
  /** Why the outcome could not be recorded; the next apply finds out by itself. */
  readonly unrecorded?: ZaeLimiterError;
}

/** Plans what an apply would do now. Reads, and changes nothing. */
export async function planManifest(repo: Repository, manifest: Manifest): Promise<LimitPlan> {
  const { records } = repo[INTERNALS];
  return planFor(records, manifest, await readManaged(records));
}

/** Applies a manifest. Writes nothing when nothing differs. */
export async function applyManifest(
  repo: Repository,
  manifest: Manifest,
  options: ApplyOptions = {},
): Promise<ApplyResult> {
  const { records, timer } = repo[INTERNALS];
  const fingerprint = fingerprintOf(manifest);
  const { waitMs = WAIT_MS, signal, full = false } = options;
  const taken = await ApplyTurn.take(records, { timer, waitMs, signal }, async (record) => {
    const plan = await planFor(records, manifest, record, full);
    if (isSettled(record, plan, fingerprint)) return { plan };
    checkFits(allRemembered(record, plan));
    return { plan, begin: beginning(record, plan) };
  });
  const { plan } = taken.prepared;
  if (taken.turn === undefined) return { plan, applied: [], failed: [], skipped: [] };
  const { lost, ...outcome } = await carryOut(repo, plan.changes, taken.turn, {
    ...options,
    replaceKind: manifest.replaceKind === true,
  });
  if (lost !== undefined) return { plan, ...outcome, unrecorded: lost };
  const complete = outcome.failed.length === 0 && outcome.skipped.length === 0;
  const unrecorded = await failureOf(
    taken.turn.end({
      ...ending(taken.record, plan, outcome),
      ...(complete ? { fingerprint, lastApplied: timestampOf(records) } : {}),
    }),
  );
  return { plan, ...outcome, ...defined({ unrecorded }) };
}

async function planFor(
  records: RecordContext,
  manifest: Manifest,
  managed: ManagedRecord,
  full = false,
): Promise<LimitPlan> {
  const declared = declarationsOf(manifest).map(([target]) => target);
  const parents = parentsOf(manifest);
  const targets = [...declared, ...parents, ...managed.targets, ...managed.unsettled];
  return planChanges(manifest, await readLevels(records, targets), managed, full);
}

interface Outcome extends Omit<ApplyResult, "plan" | "unrecorded"> {
  /** Set when the lock was lost before the work was done. */
  readonly lost?: ZaeLimiterError;
}

/** Makes the changes one after the other: each raises the config version, so two would collide. */
async function carryOut(
  repo: Repository,
  changes: readonly LimitChange[],
  turn: ApplyTurn,
  { principal, signal, onChange, replaceKind }: ApplyOptions & { readonly replaceKind: boolean },
): Promise<Outcome> {
  const applied: LimitChange[] = [];
  const failed: { change: LimitChange; error: ZaeLimiterError }[] = [];
  const by = defined({ principal });
  let unavailable = 0;
  for (const [position, change] of changes.entries()) {
    const skipped = changes.slice(position);
    if (signal?.aborted === true || unavailable === UNAVAILABLE_MAX) {
      return { applied, failed, skipped };
    }
    const lost = await failureOf(turn.extend());
    if (lost !== undefined) return { applied, failed, skipped, lost };
    const error = await failureOf(carryOutOne(repo, change, by, replaceKind));
    if (error === undefined) applied.push(change);
    else failed.push({ change, error });
    unavailable = error instanceof RateLimiterUnavailable ? unavailable + 1 : 0;
    onChange?.(change, error);
  }
  return { applied, failed, skipped: [] };
}

/** Returns an error of this library, which is reported; any other error is a bug and is thrown. */
async function failureOf(work: Promise<void>): Promise<ZaeLimiterError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof ZaeLimiterError) return error;
    throw error;
  }
}

async function carryOutOne(
  { entities, limits }: Repository,
  change: LimitChange,
  by: ChangeOptions,
  replaceKind: boolean,
): Promise<void> {
  const { target, after } = change;
  if (target.level !== "record") return storeLevel(limits, { ...change, target }, by, replaceKind);
  const { parent: parentId, cascade } = after ?? {};
  await entities.ensure({ id: target.entityId, ...defined({ parentId, cascade }), ...by });
}

async function storeLevel(
  limits: Repository["limits"],
  { target, before: stored, after, reason }: LimitChange & { readonly target: LevelTarget },
  by: ChangeOptions,
  replaceKind: boolean,
): Promise<void> {
  const how = { ...by, replaceKind };
  // Flags that are set again stamp the buckets again.
  const before = reason === "full" ? undefined : stored;
  if (target.level === "system") {
    if (after === undefined) return limits.deleteSystem(by);
    return limits.setSystem(after.limits, { ...how, onUnavailable: after.onUnavailable ?? null });
  }
  if (after === undefined) {
    await removeLimits(limits, target, by);
    if (isFlagged(target)) await keepFlags(limits, target, before, after, by);
    return;
  }
  // Flags first: a resource must be switched off before the limits that protect it are deleted.
  if (isFlagged(target)) await keepFlags(limits, target, before, after, by);
  // Where only flags are declared, limits that the Python library enforces stay.
  if (after.limits.length === 0 && (stored?.limits.length ?? 0) === 0) return;
  const { resource } = target;
  if (target.level === "resource") return limits.setResource(resource, after.limits, how);
  const set = target.level === "children" ? "setChildren" : "setEntity";
  return limits[set](target.entityId, after.limits, { ...how, resource });
}

type LevelTarget = Exclude<Target, { readonly level: "record" }>;
type LimitsTarget = Exclude<LevelTarget, { readonly level: "system" }>;
type FlaggedTarget = LimitsTarget & { readonly level: "resource" | "entity" };

/** Returns whether the place can have flags: limits for children have none. */
function isFlagged(target: LimitsTarget): target is FlaggedTarget {
  return target.level !== "children";
}

async function removeLimits(
  limits: LimitRecords,
  target: LimitsTarget,
  by: ChangeOptions,
): Promise<void> {
  const { resource } = target;
  if (target.level === "resource") return limits.deleteResource(resource, by);
  const remove = target.level === "children" ? "deleteChildren" : "deleteEntity";
  return limits[remove](target.entityId, { ...by, resource });
}

/** Sets the flags of a level as declared; only those that differ are written. */
async function keepFlags(
  limits: SwitchRecords,
  target: FlaggedTarget,
  before: LevelConfig | undefined,
  after: LevelConfig | undefined,
  by: ChangeOptions,
): Promise<void> {
  const { resource } = target;
  const place = target.level === "entity" ? { entityId: target.entityId, resource } : { resource };
  const disabled = after?.disabled;
  if (disabled !== before?.disabled) {
    if (disabled === undefined) await limits.clear(place, by);
    else if (disabled === "bypass") await limits.bypass(place, by);
    else await limits[disabled ? "disable" : "enable"](place, by);
  }
  if (after?.cascade !== before?.cascade) {
    await limits.setCascade(place, after?.cascade ?? null, by);
  }
}

type Content = Omit<ManagedContent, "run">;

/** The outcome of the changes of a plan. */
interface Carried {
  readonly applied: readonly LimitChange[];
  readonly failed: readonly { readonly change: LimitChange }[];
  readonly skipped: readonly LimitChange[];
}

/** Returns whether there is nothing to change, to record or to clean up. */
export function isSettled(record: ManagedRecord, plan: LimitPlan, fingerprint: string): boolean {
  const nothing = plan.changes.length + plan.adopted.length + plan.forgotten.length === 0;
  const tidy = record.unsettled.length === 0 && record.run === undefined;
  return nothing && tidy && record.fingerprint === fingerprint;
}

/** Returns the record before the first change: the places to create, in case the apply dies. */
function beginning(record: ManagedRecord, plan: LimitPlan): Content {
  const created = targetsIn(plan.changes.filter(({ action }) => action === "create"));
  return {
    ...contentOf(record),
    unsettled: without([...record.unsettled, ...created], record.targets),
  };
}

/**
 * Returns the record after the last change: only successful changes are managed. A failed change
 * may have been written and stays in doubt; one that was not attempted certainly was not.
 */
export function ending(record: ManagedRecord, plan: LimitPlan, carried: Carried): Content {
  const { applied, skipped } = carried;
  const removed = targetsIn(applied.filter(({ action }) => action === "delete"));
  const present = targetsIn(applied.filter(({ action }) => action !== "delete"));
  const targets = without(
    [...record.targets, ...plan.adopted, ...present],
    [...removed, ...plan.forgotten],
  );
  const unwritten = targetsIn(skipped.filter(({ action }) => action === "create"));
  const certain = [...targets, ...removed, ...plan.forgotten, ...unwritten];
  return {
    ...contentOf(record),
    targets,
    unsettled: without(beginning(record, plan).unsettled, certain),
  };
}

/** Returns the most that an apply of this plan may have to remember. */
function allRemembered(record: ManagedRecord, plan: LimitPlan): Content {
  const all = [...record.targets, ...record.unsettled, ...plan.adopted, ...targetsIn(plan.changes)];
  return { ...contentOf(record), targets: without(all, []), unsettled: [] };
}

/** Returns the content of a record without the run of an apply, which is over or about to begin. */
function contentOf(record: ManagedRecord): Content {
  const { targets, unsettled, fingerprint, lastApplied } = record;
  return defined({ targets, unsettled, fingerprint, lastApplied });
}

/** Returns the places of changes, without entities: these are not managed. */
function targetsIn(changes: readonly LimitChange[]): Target[] {
  return changes.map(({ target }) => target).filter(({ level }) => level !== "record");
}

/** Returns each place once, without those in `others`. */
function without(targets: readonly Target[], others: readonly Target[]): Target[] {
  const excluded = new Set(others.map(targetKey));
  return distinctTargets(targets).filter((target) => !excluded.has(targetKey(target)));
}
