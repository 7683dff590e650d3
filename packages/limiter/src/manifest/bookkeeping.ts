/** What the record of managed places says before an apply and after it. Pure. */

import { defined } from "../base/defined.ts";
import type { ManagedContent, ManagedRecord } from "./managed-record.ts";
import { distinctTargets, type Target, targetKey } from "./manifest.ts";
import type { LimitChange, LimitPlan } from "./plan.ts";

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
export function beginning(record: ManagedRecord, plan: LimitPlan): Content {
  const created = plan.changes.filter(({ action }) => action === "create").map(targetIn);
  return {
    ...contentOf(record),
    unsettled: without([...record.unsettled, ...created], record.targets),
  };
}

/**
 * After the last change: only what succeeded is managed. What failed may have been written all the
 * same and stays in doubt; what was not attempted certainly was not written.
 */
export function ending(record: ManagedRecord, plan: LimitPlan, carried: Carried): Content {
  const { applied, skipped } = carried;
  const removed = applied.filter(({ action }) => action === "delete").map(targetIn);
  const present = applied.filter(({ action }) => action !== "delete").map(targetIn);
  const targets = without(
    [...record.targets, ...plan.adopted, ...present],
    [...removed, ...plan.forgotten],
  );
  const unwritten = skipped.filter(({ action }) => action === "create").map(targetIn);
  const certain = [...targets, ...removed, ...plan.forgotten, ...unwritten];
  return {
    ...contentOf(record),
    targets,
    unsettled: without(beginning(record, plan).unsettled, certain),
  };
}

/** The most that an apply of this plan may have to remember. */
export function allRemembered(record: ManagedRecord, plan: LimitPlan): Content {
  const all = [
    ...record.targets,
    ...record.unsettled,
    ...plan.adopted,
    ...plan.changes.map(targetIn),
  ];
  return { ...contentOf(record), targets: without(all, []), unsettled: [] };
}

/** Without the run of an apply, which is over or about to begin. */
function contentOf(record: ManagedRecord): Content {
  const { targets, unsettled, fingerprint, lastApplied } = record;
  return defined({ targets, unsettled, fingerprint, lastApplied });
}

function targetIn({ target }: LimitChange): Target {
  return target;
}

/** Returns each place once, without those in `others`. */
function without(targets: readonly Target[], others: readonly Target[]): Target[] {
  const excluded = new Set(others.map(targetKey));
  return distinctTargets(targets).filter((target) => !excluded.has(targetKey(target)));
}
