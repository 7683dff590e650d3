/** Switches entities and resources off and on, lets them bypass their limits, or cascade. */

import { checkFields, show } from "../../domain/check.ts";
import { type DisabledLevel, ValidationError } from "../../domain/errors/errors.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import { DEFAULT_RESOURCE } from "../../domain/names.ts";
import { type Item, type Key, valueAt } from "../../storage/item.ts";
import { type AuditLog, type AuditWrite, checkAuditor } from "../audit.ts";
import { entityConfigKey, resourceConfigKey, systemConfigKey } from "../keys.ts";
import { cascadeIn, type DisabledFlag, disabledIn } from "../python-attributes.ts";
import type { RecordContext } from "../record-context.ts";
import { changeConfig } from "./config-change.ts";
import {
  type ConfigLevel,
  checkLevel,
  clearFlag,
  type FlagTarget,
  setFlag,
} from "./config-level.ts";
import type { ConfigResolver } from "./config-resolver.ts";
import { decodeLimits, unsupportedLimits } from "./limit-attributes.ts";
import type { PythonFollower } from "./python-follower.ts";
import { type SwitchResult, sweep } from "./sweep.ts";

/** Options of a change: the principal for the audit log. */
export interface ChangeOptions {
  /** The name that goes into the audit log. */
  readonly principal?: string;
}

/** Whether limits are enforced, everything is refused, or everything is granted and counted. */
export type SwitchState = "enabled" | "disabled" | "bypass";

/**
 * State of the switches of an entity and a resource.
 *
 * @example
 * ```ts
 * import { Repository, type SwitchReport } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.disable({ resource: 'gpt-4' });
 * const place = { entityId: 'key-1', resource: 'gpt-4' };
 * const report: SwitchReport = await repo.limits.state(place);
 * console.log(report.state, report.level, report.own); // disabled resource undefined
 * await repo.close();
 * ```
 */
export interface SwitchReport {
  /** State that applies, whichever level decides. */
  readonly state: SwitchState;
  /** The level that decides; `undefined` where none says anything, so that limits are enforced. */
  readonly level: DisabledLevel | undefined;
  /** State stored in exactly this place; `undefined` where a wider level answers. */
  readonly own: SwitchState | undefined;
}

/**
 * Everything that one level says, and nothing of other levels.
 *
 * @example
 * ```ts
 * import { Repository, type StoredLevel } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setResource('gpt-4', ['rpm:50']);
 * const level: StoredLevel = await repo.limits.level({ resource: 'gpt-4' });
 * console.log(String(level.limits[0]), level.state); // rpm:50/min undefined
 * await repo.close();
 * ```
 */
export interface StoredLevel {
  /** The limits of the level; empty when it has none. */
  readonly limits: readonly Limit[];
  /** Limits that only the Python library can enforce. */
  readonly unsupported: readonly UnsupportedLimit[];
  /** `undefined` where the next wider level answers. */
  readonly state: SwitchState | undefined;
  /** Whether acquires cascade; `undefined` where the next wider level answers. */
  readonly cascade: boolean | undefined;
}

/** The setting of one flag; `undefined` removes it. */
interface FlagChange {
  readonly name: "disabled" | "cascade";
  readonly value: DisabledFlag | undefined;
}

/**
 * The switches of levels, as `repo.limits` has them.
 *
 * @example
 * ```ts
 * import { RateLimiter, ResourceDisabled } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const { limits } = limiter.repository;
 * await limits.setResource('gpt-4', ['rpm:10']);
 * await limits.disable({ resource: 'gpt-4' }, { principal: 'ops' });
 * try {
 *   await limiter.acquire({ entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 1 } });
 * } catch (error) {
 *   console.log(error instanceof ResourceDisabled && error.level); // resource
 * }
 * await limits.bypass({ entityId: 'key-1', resource: 'gpt-4' });
 * const request = { entityId: 'key-1', resource: 'gpt-4', consume: { rpm: 99 } };
 * const lease = await limiter.acquire(request);
 * console.log(lease.bypassed); // true
 * await limiter.close();
 * ```
 */
export class SwitchRecords {
  readonly #context: RecordContext;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;
  readonly #python: PythonFollower | undefined;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    python: PythonFollower | undefined,
  ) {
    this.#context = context;
    this.#audit = audit;
    this.#resolver = resolver;
    this.#python = python;
  }

  /**
   * Switches a resource off, an entity, or an entity for one resource: every acquire is refused
   * with `ResourceDisabled`. Balances stay. This process refuses from its next call on; other
   * processes follow within the time that limits are cached.
   */
  disable(target: FlagTarget, options: ChangeOptions = {}): Promise<SwitchResult> {
    return this.#change(target, { name: "disabled", value: true }, options);
  }

  /** Switches on, also where a wider level switches off. */
  enable(target: FlagTarget, options: ChangeOptions = {}): Promise<SwitchResult> {
    return this.#change(target, { name: "disabled", value: false }, options);
  }

  /** Grants everything and counts it: balances stay as they are, and nothing is refused. */
  async bypass(target: FlagTarget, options: ChangeOptions = {}): Promise<SwitchResult> {
    return this.#change(target, { name: "disabled", value: "bypass" }, options, "bypass");
  }

  /** Removes the switch of exactly this place, so that the next wider level answers. */
  clear(target: FlagTarget, options: ChangeOptions = {}): Promise<SwitchResult> {
    return this.#change(target, { name: "disabled", value: undefined }, options);
  }

  /** Whether a place is switched off, bypassed or enforced, and which level says so. */
  async state(target: FlagTarget): Promise<SwitchReport> {
    const places = placesOf(this.#context.namespaceId, this.#level(target));
    const items = await this.#context.store.getMany(
      places.map(({ key }) => key),
      { consistent: true },
    );
    const flags = items.map(disabledIn);
    const at = flags.findIndex((flag) => flag !== undefined);
    const state = stateOf(flags[at]) ?? "enabled";
    return { state, level: places[at]?.level, own: stateOf(flags[0]) };
  }

  /**
   * Says whether acquires cascade to the parent, for a resource, an entity, or an entity for one
   * resource. `null` removes it: then the next wider level answers, and at last the entity itself.
   */
  async setCascade(
    target: FlagTarget,
    cascade: boolean | null,
    options: ChangeOptions = {},
  ): Promise<SwitchResult> {
    if (cascade !== null && typeof cascade !== "boolean") {
      const reason = `expected true, false or null, got ${show(cascade)}`;
      throw new ValidationError("cascade", cascade, reason);
    }
    const change: FlagChange = { name: "cascade", value: cascade ?? undefined };
    return this.#change(target, change, options, cascade === null ? undefined : "cascade policy");
  }

  /**
   * Reads what is stored in exactly this place: limits, flags, and limits that only Python
   * enforces.
   */
  async level(target: FlagTarget): Promise<StoredLevel> {
    return levelOf(await this.#context.store.get(this.#level(target).key, { consistent: true }));
  }

  /** Reads what is stored for the whole namespace, which has no flags. */
  async systemLevel(): Promise<StoredLevel> {
    const key = systemConfigKey(this.#context.namespaceId);
    return levelOf(await this.#context.store.get(key, { consistent: true }));
  }

  async #change(
    target: FlagTarget,
    { name, value }: FlagChange,
    options: ChangeOptions,
    feature?: "bypass" | "cascade policy",
  ): Promise<SwitchResult> {
    const level = this.#level(target);
    checkFields("options", options, ["principal"]);
    const principal = checkAuditor(options.principal);
    if (feature !== undefined) await this.#python?.claim(feature);
    const { namespaceId } = this.#context;
    const { key, registryKey, subject, resource, slot } = level;
    const keys = [key, registryKey];
    let event: AuditWrite | undefined;
    const version = await changeConfig(this.#context, keys, ({ items, system }) => {
      const [item, registry] = items;
      if (valueAt(item, name) === value) return undefined;
      const writes =
        value === undefined
          ? clearFlag(level, item as Item, registry, name)
          : setFlag(namespaceId, level, item, name, value);
      const details = { [name]: value ?? null };
      const entry = { action: "limits_set", subject, principal, resource, details } as const;
      event = this.#audit.entryIn(system, entry);
      return { writes: [...writes, event] };
    });
    this.#resolver.changed(version, [slot]);
    const python = this.#python;
    if (python === undefined) return { stampedBuckets: 0 };
    return sweep(
      (onStamped) => python.stampFlags(level, onStamped),
      (stamped) => this.#audit.tellStamped(event, stamped),
    );
  }

  #level(target: FlagTarget): ConfigLevel {
    checkFields("target", target, ["entityId", "resource"]);
    return checkLevel(this.#context.namespaceId, target);
  }
}

function levelOf(item: Item | undefined): StoredLevel {
  return {
    limits: decodeLimits(item),
    unsupported: unsupportedLimits(item),
    state: stateOf(disabledIn(item)),
    cascade: cascadeIn(item),
  };
}

/** Returns the places that are asked, the most specific first, each with its name. */
function placesOf(
  namespaceId: string,
  { entityId, resource }: ConfigLevel,
): { readonly key: Key; readonly level: DisabledLevel }[] {
  const ofResource = { key: resourceConfigKey(namespaceId, resource), level: "resource" } as const;
  if (entityId === undefined) return [ofResource];
  const key = entityConfigKey(namespaceId, entityId, DEFAULT_RESOURCE);
  const ofEntity = { key, level: "entity_default" } as const;
  if (resource === DEFAULT_RESOURCE) return [ofEntity];
  const own = entityConfigKey(namespaceId, entityId, resource);
  return [{ key: own, level: "entity" }, ofEntity, ofResource];
}

/** Returns the word for a stored flag. */
function stateOf(flag: DisabledFlag | undefined): SwitchState | undefined {
  if (flag === undefined) return undefined;
  if (flag === "bypass") return "bypass";
  return flag ? "disabled" : "enabled";
}
