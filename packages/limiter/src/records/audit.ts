/**
 * The audit log of changes and their principals. An event is written in the transaction of the
 * change it describes, so neither exists without the other.
 */

import { monotonicFactory } from "ulid";
import { defined } from "../base/defined.ts";
import { isoSeconds } from "../core/windows.ts";
import { checkFields, checkInteger } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { JsonValue } from "../domain/json.ts";
import { checkEntityId, checkPrincipal, checkResource } from "../domain/names.ts";
import { type Item, integerAt, jsonAt, type Key, textAt, type Value } from "../storage/item.ts";
import { ITEM_EXISTS } from "../storage/item-store.ts";
import { AUDIT_PREFIX, auditKey, auditPartition, inNamespace, namespaceOf } from "./keys.ts";
import { queryRecords } from "./query-records.ts";
import type { RecordContext } from "./record-context.ts";

/** The subject of events about the limits of a whole namespace. */
export const SYSTEM_SUBJECT = "$SYSTEM";
const RESOURCE_SUBJECT_PREFIX = "$RESOURCE:";

export const AUDIT_RETENTION_DAYS = 90;
/** Attribute of the system config: how many days events are kept. */
export const AUDIT_RETENTION = "audit_retention_days";
const PAGE_MAX = 10_000;
const ULID_PATTERN = /^[0-9A-HJKMNP-TV-Z]{26}$/;

const RETENTION_DAYS_MAX = 36_500;

/** Returns the days that events are kept by the system config; `undefined` when it has none. */
export function retentionDaysIn(system: Item | undefined): number | undefined {
  return integerAt(system, AUDIT_RETENTION, 1, RETENTION_DAYS_MAX);
}

/** Everything that is audited. */
const AUDIT_ACTIONS = [
  "entity_created",
  "entity_updated",
  "entity_deleted",
  "entity_parent_changed",
  "limits_set",
  "limits_deleted",
  "bucket_reset",
  "bucket_topped_up",
  "price_set",
  "price_deleted",
  "webhook_set",
  "webhook_deleted",
  "store_copied",
] as const;
/** Actions of audit events. */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/**
 * One change in the audit log.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.entities.create({ id: 'key-1', principal: 'ops' });
 * const [event] = await repo.audit.list('key-1');
 * console.log(event?.action, event?.principal); // entity_created ops
 * await repo.close();
 * ```
 */
export interface AuditEvent {
  /** A ULID: sorts by time. */
  readonly eventId: string;
  /** `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly timestamp: string;
  /** The action: an `AuditAction`, or an action of the Python library. */
  readonly action: string;
  /** An entity, `$SYSTEM`, or `$RESOURCE:` and a resource. */
  readonly entityId: string;
  /** The person or program that made the change, as it named itself. */
  readonly principal?: string;
  /** The resource that the change is about. */
  readonly resource?: string;
  /** Changed values; the fields depend on the action. */
  readonly details: Readonly<Record<string, JsonValue>>;
}

/** A change, as its caller describes it. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly subject: string;
  readonly principal: string | undefined;
  readonly resource?: string;
  readonly details?: Readonly<Record<string, JsonValue>>;
}

export interface AuditWrite {
  readonly put: Item;
}

/** Returns the subject of events about a resource. */
export function resourceSubject(resource: string): string {
  return RESOURCE_SUBJECT_PREFIX + resource;
}

/** Checks the optional principal of a change, before anything is written. */
export function checkAuditor(principal: string | undefined): string | undefined {
  return principal === undefined ? undefined : checkPrincipal(principal);
}

/**
 * Reads the audit log.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.setSystem(['rpm:100'], { principal: 'ops' });
 * const [event] = await repo.audit.list('$SYSTEM');
 * console.log(event?.action); // limits_set
 * console.log((await repo.audit.listAll()).length); // 1
 * await repo.close();
 * ```
 */
export class AuditLog {
  readonly #context: RecordContext;
  readonly #nextId: (now: number) => string;

  constructor(context: RecordContext) {
    this.#context = context;
    // Monotonic, so that two events of one millisecond keep their order.
    this.#nextId = monotonicFactory(context.random);
  }

  /**
   * Returns the newest events of an entity, of `$SYSTEM` or of `$RESOURCE:<name>`, newest first.
   */
  async list(
    subject: string,
    options: { limit?: number; after?: string } = {},
  ): Promise<AuditEvent[]> {
    checkSubject(subject);
    checkFields("options", options, ["limit", "after"]);
    const limit = checkInteger("limit", options.limit ?? 100, 1, PAGE_MAX);
    const { store, namespaceId } = this.#context;
    const partition = auditPartition(namespaceId, subject);
    const events: AuditEvent[] = [];
    let after =
      options.after === undefined
        ? undefined
        : auditKey(namespaceId, subject, checkEventId(options.after));
    // Items that are no events do not count, so there may have to be another round.
    for (let full = true; full && events.length < limit; ) {
      const wanted = limit - events.length;
      let found = 0;
      for await (const item of store.query({
        partition,
        sort: { beginsWith: AUDIT_PREFIX },
        descending: true,
        consistent: true,
        limit: wanted,
        ...defined({ after: after as Item | undefined }),
      })) {
        found += 1;
        after = item;
        const event = decodeEvent(item);
        if (event !== undefined) events.push(event);
      }
      full = found === wanted;
    }
    return events;
  }

  /**
   * Returns the newest events of the whole namespace, newest first. Events are stored by their
   * subject, so this reads the keys of all events that are kept.
   */
  async listAll(options: { limit?: number; after?: string } = {}): Promise<AuditEvent[]> {
    checkFields("options", options, ["limit", "after"]);
    const limit = checkInteger("limit", options.limit ?? 100, 1, PAGE_MAX);
    const before = options.after === undefined ? undefined : checkEventId(options.after);
    const { namespaceId } = this.#context;
    const query = {
      index: "GSI4",
      partition: namespaceId,
      sort: { beginsWith: auditPartition(namespaceId, "") },
    } as const;
    let newest: Key[] = [];
    for await (const { PK, SK } of queryRecords(this.#context, query)) {
      if (!SK.startsWith(AUDIT_PREFIX)) continue;
      if (before !== undefined && SK.slice(AUDIT_PREFIX.length) >= before) continue;
      newest.push({ PK, SK });
      if (newest.length >= 2 * limit) newest = newestOf(newest, limit);
    }
    const items = await this.#context.store.getMany(newestOf(newest, limit));
    return items.flatMap((item) => (item === undefined ? [] : (decodeEvent(item) ?? [])));
  }

  /** Returns a ULID of now, later than those before it. */
  newId(): string {
    return this.#nextId(this.#context.clock());
  }

  /**
   * Returns the write that records a change; it belongs into the transaction of that change. A step
   * that may run again passes an id that was made before it, so that it names the same item again.
   */
  entry(entry: AuditEntry, retentionDays: number, id?: string): AuditWrite {
    const { clock, namespaceId } = this.#context;
    const nowMs = clock();
    const eventId = id ?? this.#nextId(nowMs);
    const key = auditKey(namespaceId, entry.subject, eventId);
    return {
      put: {
        ...key,
        ...inNamespace(namespaceId, key.PK),
        entity_id: entry.subject,
        event_id: eventId,
        timestamp: isoSeconds(nowMs),
        action: entry.action,
        principal: entry.principal ?? null,
        resource: entry.resource ?? null,
        details: (entry.details ?? {}) as Value,
        ttl: Math.floor(nowMs / 1000) + retentionDays * 86_400,
      },
    };
  }

  /** Returns the write of an event, kept as long as the system config says. */
  entryIn(system: Item | undefined, entry: AuditEntry): AuditWrite {
    return this.entry(entry, retentionDaysIn(system) ?? AUDIT_RETENTION_DAYS);
  }

  /** Adds to an event how many live buckets were stamped, which comes after the change itself. */
  async tellStamped(event: AuditWrite | undefined, stampedBuckets: number): Promise<void> {
    if (event === undefined) return;
    const { PK, SK, details } = event.put;
    const told = { ...(details as Record<string, Value>), buckets_stamped: stampedBuckets };
    await this.#context.store.update({ PK, SK }, { set: { details: told } }, [ITEM_EXISTS]);
  }
}

/** Returns the sort key of an event: its id, which sorts by time. */
function newestOf(keys: readonly Key[], count: number): Key[] {
  return keys.toSorted((one, other) => (one.SK > other.SK ? -1 : 1)).slice(0, count);
}

/**
 * Returns the event in an item; `undefined` when the item is none, or is not the one its key names.
 */
export function decodeEvent(item: Item): AuditEvent | undefined {
  const action = textAt(item, "action");
  const eventId = textAt(item, "event_id");
  const entityId = textAt(item, "entity_id");
  if (action === undefined || eventId === undefined || entityId === undefined) return undefined;
  const { PK, SK } = auditKey(namespaceOf(item.PK), entityId, eventId);
  if (PK !== item.PK || SK !== item.SK) return undefined;
  return defined({
    eventId,
    timestamp: textAt(item, "timestamp") ?? "",
    action,
    entityId,
    principal: textAt(item, "principal"),
    resource: textAt(item, "resource"),
    details: jsonAt(item, "details"),
  });
}

function checkSubject(subject: string): void {
  if (subject === SYSTEM_SUBJECT) return;
  if (typeof subject === "string" && subject.startsWith(RESOURCE_SUBJECT_PREFIX)) {
    checkResource(subject.slice(RESOURCE_SUBJECT_PREFIX.length));
  } else {
    checkEntityId(subject);
  }
}

function checkEventId(eventId: string): string {
  if (typeof eventId === "string" && ULID_PATTERN.test(eventId)) return eventId;
  throw new ValidationError("after", eventId, "expected the id of an audit event (a ULID)");
}
