/** Reads what is stored in places that can have limits. */

import { defined } from "../base/defined.ts";
import { InfrastructureError } from "../domain/errors/errors.ts";
import { isCounted } from "../records/config/config-registry.ts";
import {
  decodeLimits,
  onUnavailableIn,
  unsupportedLimits,
} from "../records/config/limit-attributes.ts";
import { decodeEntity } from "../records/entities/entity-item.ts";
import {
  childrenConfigKey,
  entityConfigKey,
  entityKey,
  resourceConfigKey,
  resourceRegistryKey,
  systemConfigKey,
} from "../records/keys.ts";
import { cascadeIn, disabledIn } from "../records/python-attributes.ts";
import type { RecordContext } from "../records/record-context.ts";
import { type Item, type Key, textAt, valueAt } from "../storage/item.ts";
import { type LevelConfig, type Target, targetKey } from "./manifest.ts";
import type { StoredLevel } from "./plan.ts";

/** Returns the stored level of a place that was read; `undefined` where nothing is stored. */
type StoredLevels = (target: Target) => StoredLevel | undefined;

/** Reads all of the places, past every cache. */
export async function readLevels(
  { store, namespaceId }: RecordContext,
  targets: readonly Target[],
): Promise<StoredLevels> {
  const distinct = new Map(targets.map((target) => [targetKey(target), target]));
  const keys = [...distinct.values()].map((target) => keyOfTarget(namespaceId, target));
  const [registry, ...items] = await store.getMany([resourceRegistryKey(namespaceId), ...keys], {
    consistent: true,
  });
  const registered = setAt(registry, "resources");
  const levels = new Map(
    [...distinct].map(([name, target], position) => [
      name,
      levelIn(target, items[position], registered),
    ]),
  );
  return (target) => levels.get(targetKey(target));
}

function keyOfTarget(namespaceId: string, target: Target): Key {
  if (target.level === "system") return systemConfigKey(namespaceId);
  if (target.level === "resource") return resourceConfigKey(namespaceId, target.resource);
  if (target.level === "record") return entityKey(namespaceId, target.entityId);
  const keyOf = target.level === "children" ? childrenConfigKey : entityConfigKey;
  return keyOf(namespaceId, target.entityId, target.resource);
}

function levelIn(
  target: Target,
  item: Item | undefined,
  resources: ReadonlySet<string>,
): StoredLevel | undefined {
  if (item === undefined) return undefined;
  if (target.level === "record") return { config: recordIn(item), registered: true };
  const config = configIn(target, item);
  const registered = textAt(item, "GSI4SK") !== undefined && isLedTo(target, item, resources);
  if (config === undefined) return { registered };
  // The item of the system is always there, to count changes; it need not say anything.
  return target.level === "system" && isSilent(config) ? undefined : { config, registered };
}

/** Returns the parent of a stored entity, and whether it cascades. */
function recordIn(item: Item): LevelConfig {
  const { parentId: parent, cascade } = decodeEntity(item);
  return { limits: [], ...defined({ parent }), cascade };
}

/** Whether a level says nothing at all. */
export function isSilent(config: LevelConfig): boolean {
  const { limits, unsupported = [], onUnavailable, disabled, cascade } = config;
  const flags = [onUnavailable, disabled, cascade];
  return (
    limits.length === 0 && unsupported.length === 0 && flags.every((flag) => flag === undefined)
  );
}

/**
 * Returns the stored settings; an invalid limit, which other tools may write, equals no declared.
 */
function configIn(target: Target, item: Item): LevelConfig | undefined {
  try {
    const limits = decodeLimits(item);
    const isSystem = target.level === "system";
    const onUnavailable = isSystem ? onUnavailableIn(item) : undefined;
    const disabled = isSystem ? undefined : disabledIn(item);
    const cascade = isSystem ? undefined : cascadeIn(item);
    const unsupported = unsupportedLimits(item);
    const flags = defined({ onUnavailable, disabled, cascade });
    return { limits, ...flags, ...(unsupported.length === 0 ? {} : { unsupported }) };
  } catch (error) {
    if (error instanceof InfrastructureError) return undefined;
    throw error;
  }
}

function isLedTo(target: Target, item: Item, resources: ReadonlySet<string>): boolean {
  if (target.level === "system") return true;
  return target.level === "resource" ? resources.has(target.resource) : isCounted(item);
}

function setAt(item: Item | undefined, name: string): ReadonlySet<string> {
  const value = valueAt(item, name);
  return value instanceof Set ? (value as ReadonlySet<string>) : new Set();
}
