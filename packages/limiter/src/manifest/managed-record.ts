/**
 * The record of applies: the places that belong to the manifest of a namespace. The record and
 * its attributes are those of the Python library; ours are added:
 *
 * - `state_version` counts the writes, so that no apply overwrites a change it has not read;
 * - `apply_run` and `apply_until_ms` say whose turn it is, and how long at most;
 * - `unsettled` names the places that an apply has set out to create. If it died, they may exist
 *   all the same, and the next apply knows them;
 * - `managed_children` names the places of limits for children, which the Python library lacks.
 */

import { defined } from "../base/defined.ts";
import { entryOf } from "../base/entry.ts";
import { isoSeconds } from "../core/windows.ts";
import { NamespaceStateError, ValidationError } from "../domain/errors/errors.ts";
import { inNamespace, provisionerKey } from "../records/keys.ts";
import { whileActive } from "../records/namespaces/namespace-state.ts";
import type { RecordContext } from "../records/record-context.ts";
import { flagAt, type Item, numberAt, textAt, type Value, valueAt } from "../storage/item.ts";
import type { Condition } from "../storage/item-store.ts";
import {
  compareTargets,
  type EntityTarget,
  SYSTEM_TARGET,
  type Target,
  targetKey,
  targetOfKey,
} from "./manifest.ts";
import type { Managed } from "./plan.ts";

/** An item of DynamoDB holds 400 KiB; some of it is for the other attributes. */
const NAMES_BYTES_MAX = 400_000;

interface ApplyRun {
  readonly id: string;
  /** Epoch ms after which it is taken for dead. */
  readonly untilMs: number;
}

export interface ManagedContent extends Managed {
  readonly run?: ApplyRun;
  /** The fingerprint of the manifest that was last applied as a whole. */
  readonly fingerprint?: string;
  readonly lastApplied?: string;
}

export interface ManagedRecord extends ManagedContent {
  /** Passes while it is still as it was read. */
  readonly asRead: Condition;
  readonly version: number;
}

export async function readManaged({ store, namespaceId }: RecordContext): Promise<ManagedRecord> {
  const item = await store.get(provisionerKey(namespaceId), { consistent: true });
  if (item === undefined) {
    return { targets: [], unsettled: [], asRead: [{ is: "absent", name: "PK" }], version: 0 };
  }
  return decode(item);
}

/** Writes if the record is still as it was read; otherwise `undefined`, and nothing is written. */
export async function writeManaged(
  { store, namespaceId }: RecordContext,
  before: ManagedRecord,
  next: ManagedContent,
): Promise<ManagedRecord | undefined> {
  const key = provisionerKey(namespaceId);
  const version = before.version + 1;
  const result = await store.transact([
    {
      put: { ...key, ...inNamespace(namespaceId, key.PK), ...encode(next), state_version: version },
      condition: before.asRead,
    },
    whileActive(namespaceId),
  ]);
  if (result.ok) return { ...next, version, asRead: versionIs(version) };
  if (!result.failures.has(1)) return undefined;
  throw new NamespaceStateError(`The namespace ${namespaceId} is not active any more`);
}

/** Refuses what does not fit into one record, before anything is written. */
export function checkFits(content: ManagedContent): void {
  const bytes = Buffer.byteLength(JSON.stringify(encode(content)));
  if (bytes <= NAMES_BYTES_MAX) return;
  throw new ValidationError(
    "manifest",
    bytes,
    `the names of what it declares take ${bytes} bytes, and at most ${NAMES_BYTES_MAX} can be ` +
      "remembered for one namespace; use fewer entities, or several namespaces",
  );
}

/** Returns the time now as `YYYY-MM-DDTHH:MM:SSZ`. */
export function timestampOf({ clock }: RecordContext): string {
  return isoSeconds(clock());
}

function encode(content: ManagedContent): Record<string, Value> {
  const { targets, unsettled, run, fingerprint, lastApplied } = content;
  const sorted = [...targets].sort(compareTargets);
  const names = { entity: new Map<string, string[]>(), children: new Map<string, string[]>() };
  const resources: string[] = [];
  for (const target of sorted) {
    if (target.level === "system" || target.level === "record") continue;
    if (target.level === "resource") resources.push(target.resource);
    else entryOf(names[target.level], target.entityId, () => []).push(target.resource);
  }
  return {
    managed_system: sorted.some(({ level }) => level === "system"),
    managed_resources: resources,
    managed_entities: Object.fromEntries(names.entity),
    ...(names.children.size === 0 ? {} : { managed_children: Object.fromEntries(names.children) }),
    ...(unsettled.length === 0 ? {} : { unsettled: unsettled.map(targetKey).sort() }),
    ...(run === undefined ? {} : { apply_run: run.id, apply_until_ms: run.untilMs }),
    ...defined({ applied_hash: fingerprint, last_applied: lastApplied }),
  };
}

function decode(item: Item): ManagedRecord {
  const version = numberAt(item, "state_version");
  const runId = textAt(item, "apply_run");
  const fingerprint = textAt(item, "applied_hash");
  const lastApplied = textAt(item, "last_applied");
  return {
    targets: [
      ...(flagAt(item, "managed_system") ? [SYSTEM_TARGET] : []),
      ...textsIn(valueAt(item, "managed_resources")).map(resourceTarget),
      ...entityTargets("entity", valueAt(item, "managed_entities")),
      ...entityTargets("children", valueAt(item, "managed_children")),
    ],
    unsettled: textsIn(valueAt(item, "unsettled")).flatMap(targetOfKey),
    ...(runId === undefined
      ? {}
      : { run: { id: runId, untilMs: numberAt(item, "apply_until_ms") ?? 0 } }),
    ...defined({ fingerprint, lastApplied }),
    version: version ?? 0,
    asRead: version === undefined ? theirs(lastApplied) : versionIs(version),
  };
}

function versionIs(version: number): Condition {
  return [{ is: "=", name: "state_version", value: version }];
}

/** Returns a condition for records of the Python library, which have a write time and no count. */
function theirs(lastApplied: string | undefined): Condition {
  return [
    { is: "exists", name: "PK" },
    { is: "absent", name: "state_version" },
    ...(lastApplied === undefined
      ? []
      : [{ is: "=", name: "last_applied", value: lastApplied } as const]),
  ];
}

function textsIn(value: Value | undefined): string[] {
  return Array.isArray(value) ? value.filter((part) => typeof part === "string") : [];
}

function entityTargets(level: EntityTarget["level"], value: Value | undefined): Target[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value as { readonly [name: string]: Value }).flatMap(
    ([entityId, resources]) =>
      textsIn(resources).map((resource): Target => ({ level, entityId, resource })),
  );
}

function resourceTarget(resource: string): Target {
  return { level: "resource", resource };
}
