/** Limits, namespaces and the audit log for the page, and changes of them. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitJson } from "@zae-limiter/limiter/domain/limit-spec.ts";
import { DEFAULT_RESOURCE } from "@zae-limiter/limiter/domain/names.ts";
import type { AuditEvent } from "@zae-limiter/limiter/records/audit.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { differencesOf } from "./differences.ts";
import { limitTexts } from "./limit-texts.ts";
import { type Change, storedLimits, storeLimits, withStoredParts } from "./place.ts";
import { failure, RequestFailure } from "./server/failure.ts";
import type {
  AuditEventJson,
  AuditJson,
  DifferenceJson,
  EntityLimitsJson,
  LimitsJson,
  ListedResourcesJson,
  NamespacesJson,
  StoredLimitsJson,
} from "./wire.ts";

const ENTITIES_PER_PAGE = 50;

export async function allLimits({ limits }: Repository): Promise<LimitsJson> {
  const [system, names, ofEntities, ofChildren] = await Promise.all([
    limits.getSystem(),
    limits.listResources(),
    limits.listEntityResources(),
    limits.listChildrenResources(),
  ]);
  const resources = await Promise.all(
    names.map(async (resource) => {
      const { limits: stored, state = null } = await limits.level({ resource });
      return { level: "resource", resource, ...limitTexts(stored), state } as const;
    }),
  );
  const { limits: texts, words } = limitTexts(system.limits);
  return {
    system: texts,
    ...defined({ systemWords: words }),
    onUnavailable: system.onUnavailable ?? null,
    resources,
    entities: listedResources(ofEntities),
    children: listedResources(ofChildren),
  };
}

function listedResources(names: readonly string[]): ListedResourcesJson {
  return {
    resources: names.filter((name) => name !== DEFAULT_RESOURCE),
    hasDefaults: names.includes(DEFAULT_RESOURCE),
  };
}

/** Returns entities with limits of their own: for a resource, or for all without one. */
export async function entityLimits(
  { limits }: Repository,
  resource: string | undefined,
  cursor: string | undefined,
): Promise<EntityLimitsJson> {
  const name = resource ?? DEFAULT_RESOURCE;
  const page = await limits.listEntities(name, {
    limit: ENTITIES_PER_PAGE,
    ...defined({ cursor }),
  });
  const found = await Promise.all(
    page.entityIds.map(async (entityId): Promise<StoredLimitsJson> => {
      const target = { entityId, ...(resource === undefined ? {} : { resource }) };
      const { limits: stored, state = null } = await limits.level(target);
      const place =
        resource === undefined
          ? ({ level: "entity_default", entityId } as const)
          : ({ level: "entity", entityId, resource } as const);
      return { ...place, ...limitTexts(stored), state };
    }),
  );
  return { limits: found, cursor: page.cursor ?? null };
}

/** Returns entities with limits for their children: for a resource, or for all without one. */
export async function childrenLimits(
  { limits }: Repository,
  resource: string | undefined,
  cursor: string | undefined,
): Promise<EntityLimitsJson> {
  const name = resource ?? DEFAULT_RESOURCE;
  const page = await limits.listParents(name, { limit: ENTITIES_PER_PAGE, ...defined({ cursor }) });
  const found = await Promise.all(
    page.entityIds.map(async (entityId): Promise<StoredLimitsJson> => {
      const stored = await limits.getChildren(entityId, { resource: name });
      const level = resource === undefined ? "parent_default" : "parent";
      return { level, entityId, ...defined({ resource }), ...limitTexts(stored) };
    }),
  );
  return { limits: found, cursor: page.cursor ?? null };
}

/** Stores limits, unless those that the page has shown are no longer stored. */
export async function saveLimits(
  repository: Repository,
  change: Change,
  principal: string | undefined,
): Promise<StoredLimitsJson> {
  const before = await storedLimits(repository, change.place);
  const stored = before.map(String);
  if (!sameTexts(stored, change.expected)) {
    const now = stored.length === 0 ? "none" : stored.join(" ");
    throw new RequestFailure(
      failure(
        409,
        "changed",
        `Another change was made before this one; the limits are now: ${now}`,
      ),
    );
  }
  const limits = withStoredParts(change.limits, before);
  await storeLimits(repository, { ...change, limits }, defined({ principal }));
  return { ...change.place, limits: change.limits.map(String) };
}

function sameTexts(left: readonly string[], right: readonly string[]): boolean {
  const [a, b] = [left, right].map((texts) => [...texts].sort().join("\n"));
  return a === b;
}

export async function allNamespaces({ namespaces }: Repository): Promise<NamespacesJson> {
  const [active, deleted, purging] = await Promise.all([
    namespaces.list(),
    namespaces.orphans(),
    namespaces.purging(),
  ]);
  const gone = (status: string) => (orphan: (typeof deleted)[number]) => ({
    name: orphan.namespace,
    namespaceId: orphan.namespaceId,
    status,
    since: orphan.deletedAt ?? null,
  });
  return {
    namespaces: [
      ...active.map(({ name, namespaceId, status, createdAt }) => ({
        name,
        namespaceId,
        status,
        since: createdAt,
      })),
      ...deleted.map(gone("deleted")),
      ...purging.map(gone("purging")),
    ],
  };
}

/** Registers, deletes, recovers or purges a namespace. */
export async function changeNamespace({ namespaces }: Repository, body: unknown): Promise<void> {
  const { action, name, namespaceId } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (action === "register") await namespaces.register(name as string);
  else if (action === "delete") await namespaces.delete(name as string);
  else if (action === "recover") await namespaces.recover(namespaceId as string);
  else if (action === "purge") await namespaces.purge(namespaceId as string);
  else {
    const actions = "register, delete, recover or purge";
    throw new ValidationError("action", action, `expected ${actions}, got ${String(action)}`);
  }
}

const EVENTS_PER_PAGE = 50;
/** Events of one subject that are read to find the limits before a change. */
const EARLIER_MAX = 200;

/** Returns events of a subject, or of the whole namespace, with differences, newest first. */
export async function auditTrail(
  repository: Repository,
  options: { subject: string | undefined; after: string | undefined },
): Promise<AuditJson> {
  const { subject, after } = options;
  const range = { limit: EVENTS_PER_PAGE, ...defined({ after }) };
  const events =
    subject === undefined
      ? await repository.audit.listAll(range)
      : await repository.audit.list(subject, range);
  const subjects = [...new Set(events.map(({ entityId }) => entityId))];
  const histories = new Map(
    await Promise.all(
      subjects.map(async (name) => {
        return [name, await repository.audit.list(name, { limit: EARLIER_MAX })] as const;
      }),
    ),
  );
  return {
    events: events.map((event) => eventJson(event, histories.get(event.entityId) ?? [])),
    after: events.length < EVENTS_PER_PAGE ? null : (events.at(-1)?.eventId ?? null),
  };
}

/** Returns an event for the page; `history` has the events of its subject, newest first. */
function eventJson(event: AuditEvent, history: readonly AuditEvent[]): AuditEventJson {
  return {
    eventId: event.eventId,
    timestamp: event.timestamp,
    action: event.action,
    subject: event.entityId,
    principal: event.principal ?? null,
    resource: event.resource ?? null,
    details: event.details,
    differences: differencesIn(event, history),
  };
}

/** Returns the limits that an event changed, compared with the event before it. */
function differencesIn(
  event: AuditEvent,
  history: readonly AuditEvent[],
): readonly DifferenceJson[] {
  if (!isOfLimits(event)) return [];
  const earlier = history.find(
    (other) =>
      other.eventId < event.eventId &&
      other.resource === event.resource &&
      other.details.level === event.details.level &&
      isOfLimits(other),
  );
  return differencesOf(earlier === undefined ? [] : limitsIn(earlier), limitsIn(event));
}

/** Returns whether an event states limits; one of a switch or a policy states only that. */
function isOfLimits({ action, details }: AuditEvent): boolean {
  if (action === "limits_deleted") return true;
  return action === "limits_set" && Array.isArray(details.limits);
}

function limitsIn({ action, details }: AuditEvent): readonly Limit[] {
  if (action !== "limits_set" || !Array.isArray(details.limits)) return [];
  return details.limits.flatMap((json) => {
    try {
      return [Limit.fromJSON(json as unknown as LimitJson)];
    } catch {
      // Another client may have written what is no limit; the event is shown without it.
      return [];
    }
  });
}
