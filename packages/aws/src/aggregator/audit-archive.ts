/**
 * Audit events that left the table, as objects for an archive: gzip, one line of JSON.
 *
 * Each event is an object of its own, named after the day, the namespace of the item and the event,
 * and an object is never replaced. A batch that is delivered again, or in pieces, finds its objects
 * in place. The namespace comes from the key of the item, which IAM checks: a tenant can neither
 * replace an event of another tenant nor take its name in advance.
 */

import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { AUDIT_PREFIX } from "@zae-limiter/limiter/records/keys.ts";
import { type Item, textAt, type Value, valueAt } from "@zae-limiter/limiter/storage/item.ts";
import type { StreamChange } from "./stream-change.ts";

/** Stores archived objects. */
export interface ArchiveSink {
  /** Writes an object; one that exists stays as it is, which is no error. */
  put(key: string, body: Uint8Array): Promise<void>;
}

interface ArchiveObject {
  readonly key: string;
  readonly body: Uint8Array;
}

interface AuditHarvest {
  readonly events: readonly ArchivedEvent[];
  /** Removed audit items that are no events. */
  readonly malformed: readonly StreamChange[];
}

interface ArchivedEvent {
  readonly id: string;
  readonly namespaceId: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly eventId: string;
  readonly line: string;
}

const FIELDS = ["event_id", "entity_id", "action", "timestamp", "principal", "resource"] as const;
const DAY_PATTERN = /^[0-9]{4}-[0-9]{2}-[0-9]{2}/;
/** Text that is safe as a part of the name of a file or an object. */
const SAFE_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
const UNSAFE_PATTERN = /[^A-Za-z0-9_-]/g;
const READABLE_LENGTH = 32;

/** Returns the audit events that were removed, by expiry or by a deletion. */
export function removedEvents(changes: Iterable<StreamChange>): AuditHarvest {
  const events: ArchivedEvent[] = [];
  const malformed: StreamChange[] = [];
  for (const change of changes) {
    const { before, after, key } = change;
    if (after !== undefined || before === undefined || !key.SK.startsWith(AUDIT_PREFIX)) continue;
    const event = archivedEvent(change, before);
    if (event === undefined) malformed.push(change);
    else events.push(event);
  }
  return { events, malformed };
}

/** Returns one object per event. */
export function archiveObjects(events: readonly ArchivedEvent[]): ArchiveObject[] {
  return events.map((event) => ({ key: objectKey(event), body: gzipSync(`${event.line}\n`) }));
}

function objectKey({ day, namespaceId, eventId }: ArchivedEvent): string {
  const [year, month, date] = day.split("-");
  const folder = `audit/year=${year}/month=${month}/day=${date}/namespace=${safeName(namespaceId)}`;
  return `${folder}/audit-${safeName(eventId)}.jsonl.gz`;
}

/** Returns a safe name; an unsafe text ends with its digest, so different texts differ. */
function safeName(text: string): string {
  if (SAFE_PATTERN.test(text)) return text;
  const readable = text.slice(0, READABLE_LENGTH).replaceAll(UNSAFE_PATTERN, "-");
  return `${readable}.${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

function archivedEvent(change: StreamChange, item: Item): ArchivedEvent | undefined {
  const slash = item.PK.indexOf("/");
  if (slash <= 0 || textAt(item, "action") === undefined) return undefined;
  const namespaceId = item.PK.slice(0, slash);
  const line: Record<string, unknown> = { namespace_id: namespaceId };
  for (const field of FIELDS) {
    const value = valueAt(item, field);
    if (value !== undefined) line[field] = value;
  }
  line.details = valueAt(item, "details") ?? {};
  const timestamp = textAt(item, "timestamp") ?? "";
  return {
    id: change.id,
    namespaceId,
    day: DAY_PATTERN.exec(timestamp)?.[0] ?? isoSeconds(change.atMs).slice(0, 10),
    eventId: textAt(item, "event_id") ?? change.key.SK.slice(AUDIT_PREFIX.length),
    line: JSON.stringify(line, (_name, value: Value) => jsonValue(value)),
  };
}

/** Returns a value as JSON, which has no sets and no integers beyond 2^53. */
function jsonValue(value: Value): unknown {
  if (value instanceof Set) return [...value];
  return typeof value === "bigint" ? String(value) : value;
}
