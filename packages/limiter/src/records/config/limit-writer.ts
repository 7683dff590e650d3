/** Writes limits of levels: the item, the registry, the audit event and the version as one. */

import { defined } from "../../base/defined.ts";
import { checkFields, checkFlag } from "../../domain/check.ts";
import { checkOnUnavailable, type OnUnavailable } from "../../domain/errors/unavailability.ts";
import { checkLimits, type LimitInput } from "../../domain/limit.ts";
import { type Key, textAt } from "../../storage/item.ts";
import { type AuditLog, checkAuditor, SYSTEM_SUBJECT } from "../audit.ts";
import { systemConfigKey } from "../keys.ts";
import type { RecordContext } from "../record-context.ts";
import { changeConfig } from "./config-change.ts";
import {
  deleteLimits,
  hasLimits,
  isFlagsOnly,
  refuseOtherKinds,
  replacedAttributes,
  replaceLimits,
  saysAlready,
} from "./config-item.ts";
import { type ConfigLevel, unlisting } from "./config-level.ts";
import type { ConfigResolver } from "./config-resolver.ts";
import { claimKinds } from "./feature-gate.ts";
import {
  encodeLimits,
  limitAttributeNames,
  limitNames,
  onUnavailableIn,
  touchesSoft,
} from "./limit-attributes.ts";
import type { PythonFollower, StampedPlace } from "./python-follower.ts";
import { sweep } from "./sweep.ts";
import type { ChangeOptions } from "./switches.ts";

/** Live buckets, which follow the limits of their entity at once. */
export interface LimitFollower {
  entityLimitsChanged(entityId: string, resource: string): Promise<void>;
  /** `undefined` where clients of the Python library cannot use the store. */
  readonly python: PythonFollower | undefined;
}

/**
 * Options of a change of limits.
 *
 * @example
 * ```ts
 * import { Repository, type SetOptions } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const options: SetOptions = { principal: 'ops', replaceKind: true };
 * await repo.limits.setResource('gpt-4', ['rpd:1000/day'], options);
 * await repo.close();
 * ```
 */
export type SetOptions = ChangeOptions & {
  /** Whether a stored limit may be replaced by one of another kind: a quota by a rate. */
  readonly replaceKind?: boolean;
};

/** Options of a change of the namespace's limits. */
export type SystemOptions = SetOptions & { readonly onUnavailable?: OnUnavailable | null };

/** Whether new limits replace those that are stored, or the stored ones stay. */
type Stored = "replace" | "keep";

export class LimitWriter {
  readonly #context: RecordContext;
  readonly #follower: LimitFollower;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    follower: LimitFollower,
  ) {
    this.#context = context;
    this.#follower = follower;
    this.#audit = audit;
    this.#resolver = resolver;
  }

  /** Sets the limits of the namespace. Returns whether it wrote. */
  async setSystem(
    limits: readonly LimitInput[],
    options: SystemOptions,
    stored: Stored,
  ): Promise<boolean> {
    checkFields("options", options, ["onUnavailable", "principal", "replaceKind"]);
    checkFlag("replaceKind", options.replaceKind);
    const checked = checkLimits(limits);
    const principal = checkAuditor(options.principal);
    const given = options.onUnavailable ?? undefined;
    const mode = given === undefined ? undefined : checkOnUnavailable(given);
    const key = systemConfigKey(this.#context.namespaceId);
    if (stored === "keep" && (await this.#hasLimits(key))) return false;
    await claimKinds(this.#follower.python, checked);
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, [], ({ system }) => {
      if (stored === "keep" && hasLimits(system)) return undefined;
      refuseOtherKinds(system, checked, options.replaceKind);
      isSoftTouched = touchesSoft(system, checked);
      const set = { ...encodeLimits(checked, system), ...defined({ on_unavailable: mode }) };
      const isModeRemoved = options.onUnavailable === null && onUnavailableIn(system) !== undefined;
      const remove = replacedAttributes(system, checked);
      if (isModeRemoved) remove.push("on_unavailable");
      if (saysAlready(system, set, remove)) return undefined;
      const details = {
        limits: checked.map((limit) => limit.toJSON()),
        on_unavailable: mode ?? null,
      };
      const entry = { action: "limits_set", subject: SYSTEM_SUBJECT, principal, details } as const;
      return { system: { set, remove }, writes: [this.#audit.entryIn(system, entry)] };
    });
    if (version === undefined) this.#resolver.cache.clear();
    const isKept = version === undefined && stored === "keep";
    this.#resolver.changedSystem(version, isKept ? undefined : options.onUnavailable);
    if (isSoftTouched) await this.#stampSoft({});
    return version !== undefined;
  }

  /** Deletes the limits and `onUnavailable` of the namespace. */
  async deleteSystem(options: ChangeOptions): Promise<void> {
    const principal = checkAuditor(options.principal);
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, [], ({ system }) => {
      isSoftTouched = touchesSoft(system, []);
      const names = limitAttributeNames(system);
      const mode = textAt(system, "on_unavailable");
      if (system === undefined || (names.length === 0 && mode === undefined)) return undefined;
      return {
        system: { remove: [...names, ...(mode === undefined ? [] : ["on_unavailable"])] },
        writes: [
          this.#audit.entryIn(system, {
            action: "limits_deleted",
            subject: SYSTEM_SUBJECT,
            principal,
            details: { limits: limitNames(system), on_unavailable: mode ?? null },
          }),
        ],
      };
    });
    this.#resolver.changedSystem(version, null);
    if (isSoftTouched) await this.#stampSoft({});
  }

  /** Sets the limits of any other level. Returns whether it wrote. */
  async set(
    level: ConfigLevel,
    limits: readonly LimitInput[],
    options: SetOptions,
    stored: Stored,
  ): Promise<boolean> {
    checkFlag("replaceKind", options.replaceKind);
    const { key, registryKey, subject, resource, attributes } = level;
    const checked = checkLimits(limits);
    const principal = checkAuditor(options.principal);
    const entry = { action: "limits_set", subject, principal, resource } as const;
    if (stored === "keep" && (await this.#hasLimits(key))) return false;
    if (level.isUnknownToPython !== true) await claimKinds(this.#follower.python, checked);
    const { namespaceId } = this.#context;
    let isSoftTouched = false;
    const keys = [key, registryKey];
    const version = await changeConfig(this.#context, keys, ({ items, system }) => {
      const [item, registry] = items;
      if (stored === "keep" && hasLimits(item)) return undefined;
      refuseOtherKinds(item, checked, options.replaceKind);
      isSoftTouched = touchesSoft(item, checked);
      const set = { ...attributes, ...encodeLimits(checked, item) };
      const isThere = saysAlready(item, set, replacedAttributes(item, checked));
      if (isThere && level.isRegistered(registry)) return undefined;
      const details = { ...level.details, limits: checked.map((limit) => limit.toJSON()) };
      return {
        writes: [
          replaceLimits(namespaceId, key, item, checked, attributes),
          ...level.register(item),
          this.#audit.entryIn(system, { ...entry, details }),
        ],
      };
    });
    if (version === undefined) this.#resolver.cache.clear();
    this.#resolver.changed(version, [level.slot]);
    // Also without a change: the earlier one may have failed before its buckets followed.
    await this.#follow(level, isSoftTouched);
    return version !== undefined;
  }

  /** Whether a level has limits; other processes may have set them since this one cached them. */
  async #hasLimits(key: Key): Promise<boolean> {
    const found = hasLimits(await this.#context.store.get(key, { consistent: true }));
    if (found) this.#resolver.cache.clear();
    return found;
  }

  /** Deletes the limits of a level; its flags stay. */
  async delete(level: ConfigLevel, options: ChangeOptions): Promise<void> {
    const { key, registryKey, subject, resource } = level;
    const principal = checkAuditor(options.principal);
    const keys = [key, registryKey];
    let isSoftTouched = false;
    const version = await changeConfig(this.#context, keys, ({ items, system }) => {
      const [item, registry] = items;
      if (item === undefined || isFlagsOnly(item)) return undefined;
      isSoftTouched = touchesSoft(item, []);
      return {
        writes: [
          ...unlisting(level, deleteLimits(item), item, registry),
          this.#audit.entryIn(system, {
            action: "limits_deleted",
            subject,
            principal,
            resource,
            ...(level.details === undefined ? {} : { details: level.details }),
          }),
        ],
      };
    });
    this.#resolver.changed(version, [level.slot]);
    if (version !== undefined) await this.#follow(level, isSoftTouched);
  }

  /** Lets live buckets follow a change. */
  async #follow(level: ConfigLevel, isSoftTouched: boolean): Promise<void> {
    const { entityId, resource, isUnknownToPython } = level;
    if (isSoftTouched && isUnknownToPython !== true) await this.#stampSoft(level);
    if (entityId !== undefined) await this.#follower.entityLimitsChanged(entityId, resource);
  }

  /** Stamps soft limits: the Python library takes one without a stamp for a hard one. */
  async #stampSoft({ entityId, resource }: StampedPlace): Promise<void> {
    const { python } = this.#follower;
    if (python === undefined) return;
    await sweep((onStamped) => python.stampSoft({ entityId, resource }, onStamped));
  }
}
