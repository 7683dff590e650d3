/**
 * Previews a change of limits before it is made: which entities get other limits, and which
 * of them used more in an hour of the last day than the new limits allow. An estimate: it knows the
 * entities that have a bucket or were counted in the last day, and use by the hour.
 */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { periodDisagreement } from "@zae-limiter/limiter/domain/limit-period.ts";
import { DEFAULT_RESOURCE, TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { pages } from "@zae-limiter/limiter/records/cursor.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { differencesOf, exceededBy, type HourlyUse } from "./differences.ts";
import {
  type Change,
  isForChildren,
  limitsBelow,
  type Place,
  storedLimits,
  withStoredParts,
} from "./place.ts";
import type { EffectJson, KindChangeJson, PreviewJson } from "./wire.ts";

const DAY_MS = 86_400_000;
const READ_MAX = 20_000;
const EFFECTS_MAX = 100;
const PAGE = 1000;

type ChildrenPlace = Extract<Place, { readonly entityId: string }>;

/** An entity and a resource that a place may apply to, with its hours of the last day. */
interface Candidate {
  readonly entityId: string;
  readonly resource: string;
  readonly hours: HourlyUse[];
}

export async function previewChange(repository: Repository, change: Change): Promise<PreviewJson> {
  const { place } = change;
  const before = await storedLimits(repository, place);
  const after = withStoredParts(change.limits, before);
  const reader = new CandidateReader(repository);
  await reader.read(place);
  const below = new Map<string, readonly Limit[]>();
  const effects: EffectJson[] = [];
  for (const { entityId, resource, hours } of reader.candidates) {
    const inherited = below.get(resource) ?? (await limitsBelow(repository, place, resource));
    below.set(resource, inherited);
    const [old, next] = [before, after].map((limits) => (limits.length > 0 ? limits : inherited));
    if (differencesOf(old ?? [], next ?? []).length === 0) continue;
    const exceeded = exceededBy(next ?? [], hours);
    const [oldTexts = [], nextTexts = []] = [old, next].map((limits) => limits?.map(String));
    effects.push({ entityId, resource, before: oldTexts, after: nextTexts, exceeded });
  }
  effects.sort((left, right) => right.exceeded.length - left.exceeded.length);
  return {
    kinds: kindChanges(before, after),
    warnings: after.flatMap((limit) => periodDisagreement(limit) ?? []),
    differences: differencesOf(before, after),
    affectedCount: effects.length,
    exceededCount: effects.filter(({ exceeded }) => exceeded.length > 0).length,
    effects: effects.slice(0, EFFECTS_MAX),
    complete: reader.complete,
    snapshots: reader.snapshots,
  };
}

/** Returns the stored limits that limits of another kind replace. */
function kindChanges(before: readonly Limit[], after: readonly Limit[]): KindChangeJson[] {
  return after.flatMap(({ name, kind }) => {
    const stored = before.find((limit) => limit.name === name);
    if (stored === undefined || stored.kind === kind) return [];
    return [{ limitName: name, before: stored.kind, after: kind }];
  });
}

/** Finds the entities that a place applies to. */
class CandidateReader {
  readonly #repository: Repository;
  readonly #found = new Map<string, Candidate>();
  #reads = 0;
  snapshots = 0;
  complete = true;

  constructor(repository: Repository) {
    this.#repository = repository;
  }

  get candidates(): Iterable<Candidate> {
    return this.#found.values();
  }

  async read(place: Place): Promise<void> {
    if (isForChildren(place)) await this.#readChildren(place as ChildrenPlace);
    else if (place.level === "entity" || place.level === "entity_default") {
      await this.#readEntity(place.entityId, "resource" in place ? place.resource : undefined);
    } else if (place.level === "resource") {
      await this.#readResource(place.resource);
    } else {
      const { limits } = this.#repository;
      const own = new Set(await limits.listResources());
      for (const resource of await this.#resources()) {
        if (resource !== TOTAL && !own.has(resource)) await this.#readResource(resource);
      }
    }
  }

  /** Reads one entity: a resource of it, or all resources for which it has no limits of its own. */
  async #readEntity(entityId: string, resource: string | undefined): Promise<void> {
    const { buckets, limits } = this.#repository;
    if (resource !== undefined) this.#candidate(entityId, resource);
    else {
      for (const state of await buckets.list(entityId)) this.#candidate(entityId, state.resource);
    }
    await this.#readHours({ entityId, ...defined({ resource }) });
    if (resource !== undefined) return;
    for (const [key, found] of this.#found) {
      if (found.entityId !== entityId) continue;
      const own = await limits.getEntity(entityId, { resource: found.resource });
      if (own.length > 0 || found.resource === TOTAL) this.#found.delete(key);
    }
  }

  /** Reads the entities directly below one that have no limits of their own. */
  async #readChildren(place: ChildrenPlace): Promise<void> {
    const { entities, limits } = this.#repository;
    for (const { id } of await entities.children(place.entityId)) {
      if (!this.#mayRead()) return;
      await this.#readEntity(id, "resource" in place ? place.resource : undefined);
    }
    for (const [key, { entityId, resource }] of this.#found) {
      const hiding = levelsOf(resource).map((level) =>
        limits.getEntity(entityId, { resource: level }),
      );
      if (place.level === "parent_default") {
        hiding.push(limits.getChildren(place.entityId, { resource }));
      }
      const stored = await Promise.all(hiding);
      if (stored.flat().length > 0) this.#found.delete(key);
    }
  }

  /** Reads all entities of a resource without limits of their own. */
  async #readResource(resource: string): Promise<void> {
    for await (const state of this.#repository[INTERNALS].buckets.listResource(resource)) {
      if (!this.#mayRead()) break;
      this.#candidate(state.entityId, resource);
    }
    await this.#readHours({ resource });
    for (const level of levelsOf(resource)) {
      for await (const id of this.#limitedAt(level)) this.#found.delete(keyOf(id, resource));
    }
  }

  /** Lists the entities that have limits of their own, or of their parent. */
  async *#limitedAt(level: string): AsyncGenerator<string> {
    const { entities, limits } = this.#repository;
    const owners = pages((from) => limits.listEntities(level, { limit: PAGE, ...from }));
    for await (const { entityIds } of owners) yield* entityIds;
    const parents = pages((from) => limits.listParents(level, { limit: PAGE, ...from }));
    for await (const { entityIds } of parents) {
      for (const parentId of entityIds) {
        for (const { id } of await entities.children(parentId)) yield id;
      }
    }
  }

  async #readHours(scope: { entityId?: string; resource?: string }): Promise<void> {
    const start = isoSeconds(this.#repository[INTERNALS].clock() - DAY_MS);
    const query = { ...scope, window: "hourly", start, limit: PAGE } as const;
    const { usage } = this.#repository;
    for await (const page of pages((from) => usage.snapshots({ ...query, ...from }))) {
      for (const { entityId, resource, windowStart, counters } of page.snapshots) {
        if (!this.#mayRead()) return;
        this.snapshots += 1;
        this.#candidate(entityId, resource).hours.push({ windowStart, counters });
      }
    }
  }

  async #resources(): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for await (const { resource } of this.#repository[INTERNALS].buckets.listAll()) {
      if (!this.#mayRead()) break;
      found.add(resource);
    }
    return found;
  }

  #candidate(entityId: string, resource: string): Candidate {
    const key = keyOf(entityId, resource);
    return entryOf(this.#found, key, () => ({ entityId, resource, hours: [] }));
  }

  #mayRead(): boolean {
    this.#reads += 1;
    if (this.#reads > READ_MAX) this.complete = false;
    return this.complete;
  }
}

/** Returns the resources for which limits of an entity may apply to a resource. */
function levelsOf(resource: string): readonly string[] {
  return resource === TOTAL ? [resource] : [resource, DEFAULT_RESOURCE];
}

function keyOf(entityId: string, resource: string): string {
  return `${resource}\n${entityId}`;
}
