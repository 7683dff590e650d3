/** Plans the changes that make the stored limits equal to the manifest. Pure. */

import { defined } from "../base/defined.ts";
import type { LimitJson } from "../domain/limit-spec.ts";
import { checkRecords } from "./entity-records.ts";
import {
  compareTargets,
  declarationsOf,
  distinctTargets,
  flagsData,
  type LevelConfig,
  levelName,
  type Manifest,
  sameConfig,
  type Target,
  targetKey,
  targetName,
} from "./manifest.ts";

/** The limits and flags that are stored in one place. */
export interface StoredLevel {
  /** Absent when what is stored there cannot be a limit. */
  readonly config?: LevelConfig;
  /** Registries and indexes lead to it; limits of the Python library's provisioner lack them. */
  readonly registered: boolean;
}

export type ChangeAction = "create" | "update" | "delete";

/** One change of stored limits, with what is there now and what will be. */
export interface LimitChange {
  readonly action: ChangeAction;
  readonly target: Target;
  readonly before?: LevelConfig;
  readonly after?: LevelConfig;
  /** The reason for an update although both sides seem equal. */
  readonly reason?: "unreadable" | "unregistered" | "full" | "kind";
}

/** The places that earlier applies have written, and those with unknown outcome. */
export interface Managed {
  readonly targets: readonly Target[];
  /** Places that an apply began to create; its outcome was never recorded. */
  readonly unsettled: readonly Target[];
}

/** The way from what is stored to what is declared. */
export interface LimitPlan {
  readonly namespace: string;
  readonly changes: readonly LimitChange[];
  /** How many places already say what the manifest says. */
  readonly unchanged: number;
  /** Already stored as declared, and managed from now on. */
  readonly adopted: readonly Target[];
  /** Managed, neither declared nor stored any more. */
  readonly forgotten: readonly Target[];
}

/**
 * Compares values; places that were never managed and are not declared are left alone. With `full`,
 * every declared place is written. Entities are created, and never managed: one that leaves the
 * file stays. Throws `InvalidManifestError` when the stored entities are not as declared.
 */
export function planChanges(
  manifest: Manifest,
  stored: (target: Target) => StoredLevel | undefined,
  managed: Managed,
  full = false,
): LimitPlan {
  checkRecords(manifest, stored);
  const declared = declarationsOf(manifest);
  const declaredKeys = new Set(declared.map(([target]) => targetKey(target)));
  const managedKeys = new Set(managed.targets.map(targetKey));
  const compared = declared.map(([target, after]) => ({
    target,
    change: changeTo(target, stored(target), after, full, manifest.replaceKind),
  }));
  const settled = compared.filter(({ change }) => change === undefined);
  const dropped = distinctTargets([...managed.targets, ...managed.unsettled]).filter(
    (target) => !declaredKeys.has(targetKey(target)),
  );
  return {
    namespace: manifest.namespace,
    changes: [
      ...compared.flatMap(({ change }) => (change === undefined ? [] : [change])),
      ...dropped.flatMap((target) => removal(target, stored(target))),
    ].sort(inOrder),
    unchanged: settled.length,
    adopted: settled
      .map(({ target }) => target)
      .filter((target) => target.level !== "record" && !managedKeys.has(targetKey(target)))
      .sort(compareTargets),
    forgotten: dropped.filter((target) => stored(target) === undefined).sort(compareTargets),
  };
}

function changeTo(
  target: Target,
  stored: StoredLevel | undefined,
  after: LevelConfig,
  full: boolean,
  replaceKind = false,
): LimitChange | undefined {
  if (stored === undefined) return { action: "create", target, after };
  if (target.level === "record") return undefined;
  const { config: before, registered } = stored;
  if (before === undefined) return { action: "update", target, after, reason: "unreadable" };
  if (!sameConfig(before, after)) {
    const isRefused = !replaceKind && changesKind(before, after);
    return { action: "update", target, before, after, ...(isRefused ? { reason: "kind" } : {}) };
  }
  if (!registered) return { action: "update", target, before, after, reason: "unregistered" };
  return full ? { action: "update", target, before, after, reason: "full" } : undefined;
}

/** Returns whether a limit of another kind would replace a stored one. */
function changesKind(before: LevelConfig, after: LevelConfig): boolean {
  const kinds = new Map(before.limits.map(({ name, kind }) => [name, kind]));
  return after.limits.some(({ name, kind }) => (kinds.get(name) ?? kind) !== kind);
}

function removal(target: Target, stored: StoredLevel | undefined): LimitChange[] {
  if (stored === undefined) return [];
  return [{ action: "delete", target, ...defined({ before: stored.config }) }];
}

/** Orders changes from general to specific, deletions last: limits that move are never missing. */
function inOrder(a: LimitChange, b: LimitChange): number {
  const removals = Number(a.action === "delete") - Number(b.action === "delete");
  return removals === 0 ? compareTargets(a.target, b.target) : removals;
}

/** A level in JSON, as plans show it. */
type LevelJson = {
  readonly on_unavailable?: string;
  readonly disabled?: boolean | string;
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly limits: readonly LimitJson[];
  /** Limits that only the Python library enforces, which stay as they are. */
  readonly unsupported?: readonly { readonly name: string; readonly kind: string }[];
};

/** A change in JSON; `before` and `after` are `null` where there is nothing. */
export type ChangeJson = {
  readonly action: ChangeAction;
  readonly level: ReturnType<typeof levelName>;
  readonly target: string | null;
  readonly before: LevelJson | null;
  readonly after: LevelJson | null;
  readonly reason?: string;
};

export function changeJson(change: LimitChange): ChangeJson {
  const { action, target, before, after, reason } = change;
  return {
    action,
    level: levelName(target),
    target: targetName(target),
    before: levelJson(before),
    after: levelJson(after),
    ...defined({ reason }),
  };
}

function levelJson(config: LevelConfig | undefined): LevelJson | null {
  if (config === undefined) return null;
  const { limits, unsupported = [] } = config;
  return {
    ...flagsData(config),
    limits: limits.map((limit) => limit.toJSON()),
    ...(unsupported.length === 0
      ? {}
      : { unsupported: unsupported.map(({ name, kind }) => ({ name, kind })) }),
  };
}
