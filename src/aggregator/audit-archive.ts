/**
 * Audit events that left the table, as objects for an archive: gzip, one JSON object a line.
 *
 * An object is named after the day and the first event in it. A batch that is delivered again, or
 * in pieces, begins with the same event as before: it writes the same object again, with what is
 * in it now, and the rest follows in objects of their own. So every event is archived once.
 */

import { gzipSync } from "node:zlib";
import { isoSeconds } from "../core/windows.ts";
import { textAt, valueAt } from "../records/fields.ts";
import { AUDIT_PREFIX } from "../records/keys.ts";
import type { Item, Value } from "../storage/item.ts";
import type { StreamChange } from "./stream-change.ts";

/** Where archived objects go. Writing one again replaces it. */
export interface ArchiveSink {
  put(key: string, body: Uint8Array): Promise<void>;
}

export interface ArchiveObject {
  readonly key: string;
  readonly body: Uint8Array;
}

export interface AuditHarvest {
  readonly events: readonly ArchivedEvent[];
  /** Removed audit items that are no events. */
  readonly malformed: readonly StreamChange[];
}

export interface ArchivedEvent {
  readonly id: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly eventId: string;
  readonly line: string;
}

const FIELDS = ["event_id", "entity_id", "action", "timestamp", "principal", "resource"] as const;
const DAY_PATTERN = /^[0-9]{4}-[0-9]{2}-[0-9]{2}/;
/** What is safe in the name of a file and of an object. */
const UNSAFE_PATTERN = /[^A-Za-z0-9_-]/g;

/** The audit events that were removed, by whomever: their time was over, or somebody deleted them. */
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

/** One object per day. */
export function archiveObjects(events: readonly ArchivedEvent[]): ArchiveObject[] {
  const days = new Map<string, ArchivedEvent[]>();
  for (const event of events) {
    const known = days.get(event.day);
    if (known === undefined) days.set(event.day, [event]);
    else known.push(event);
  }
  return [...days].map(([day, [first, ...rest]]) => {
    const all = [first as ArchivedEvent, ...rest];
    return {
      key: objectKey(day, (first as ArchivedEvent).eventId),
      body: gzipSync(all.map(({ line }) => `${line}\n`).join("")),
    };
  });
}

function objectKey(day: string, eventId: string): string {
  const [year, month, date] = day.split("-");
  const name = eventId.replaceAll(UNSAFE_PATTERN, "-");
  return `audit/year=${year}/month=${month}/day=${date}/audit-${name}.jsonl.gz`;
}

function archivedEvent(change: StreamChange, item: Item): ArchivedEvent | undefined {
  const slash = item.PK.indexOf("/");
  if (slash <= 0 || textAt(item, "action") === undefined) return undefined;
  const line: Record<string, unknown> = { namespace_id: item.PK.slice(0, slash) };
  for (const field of FIELDS) {
    const value = valueAt(item, field);
    if (value !== undefined) line[field] = value;
  }
  line.details = valueAt(item, "details") ?? {};
  const timestamp = textAt(item, "timestamp") ?? "";
  return {
    id: change.id,
    day: DAY_PATTERN.exec(timestamp)?.[0] ?? isoSeconds(change.atMs).slice(0, 10),
    eventId: textAt(item, "event_id") ?? change.key.SK.slice(AUDIT_PREFIX.length),
    line: JSON.stringify(line, (_name, value: Value) => jsonValue(value)),
  };
}

/** JSON knows no sets and no integers beyond 2^53. */
function jsonValue(value: Value): unknown {
  if (value instanceof Set) return [...value];
  return typeof value === "bigint" ? String(value) : value;
}
