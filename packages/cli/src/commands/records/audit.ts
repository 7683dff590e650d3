/** `audit`: the log of changes. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitJson } from "@zae-limiter/limiter/domain/limit-spec.ts";
import { type Group, leaf } from "../../frame/command.ts";
import { jsonOf } from "../../terminal/json.ts";
import { wholeNumber } from "../../terminal/numbers.ts";
import { table } from "../../terminal/table.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 10_000;

interface ListOptions {
  readonly entityId?: string;
  readonly limit: number;
  readonly startEventId?: string;
}

const EVENT_SHAPE = {
  event_id: "text",
  timestamp: "text",
  entity_id: "text",
  action: "text",
  principal: "text | null",
  resource: "text | null",
  details: "object",
} as const;

const list = leaf<ListOptions>({
  name: "list",
  summary: "lists changes, of one entity or of the whole namespace, the newest first",
  options: [
    {
      flags: "-e, --entity-id <id>",
      text: "an entity; $SYSTEM for system limits, $RESOURCE:gpt-4 for a resource; else all",
    },
    {
      flags: "-l, --limit <count>",
      text: "at most this many",
      default: LIMIT_DEFAULT,
      parse: wholeNumber(1, LIMIT_MAX),
    },
    { flags: "--start-event-id <id>", text: "continue after this event" },
  ],
  store: "read",
  examples: ["audit list", "audit list -e key-1", "audit list -e '$RESOURCE:gpt-4' -l 20"],
  json: {
    entity_id: "text | null",
    events: [EVENT_SHAPE],
    next_start_event_id: "text | null",
  },
  run: async ({ options, open, note, terminal }) => {
    const { entityId, limit, startEventId } = options;
    const { audit: log } = await open();
    const page = { limit, ...defined({ after: startEventId }) };
    const events = await (entityId === undefined ? log.listAll(page) : log.list(entityId, page));
    const next = events.length === limit ? events.at(-1)?.eventId : undefined;
    return {
      json: () => ({
        entity_id: entityId ?? null,
        events: events.map((event) => jsonOf(EVENT_SHAPE, { ...event })),
        next_start_event_id: next ?? null,
      }),
      text: () => {
        if (events.length === 0) return `Nothing was changed${entityId ? ` for ${entityId}` : ""}`;
        if (next !== undefined) note(`There may be more; continue with --start-event-id ${next}`);
        const subject = entityId === undefined ? ["ENTITY"] : [];
        const columns = ["TIME", ...subject, "ACTION", "PRINCIPAL", "RESOURCE", "DETAILS"];
        const rows = events.map((event) => [
          event.timestamp,
          ...(entityId === undefined ? [event.entityId] : []),
          event.action,
          event.principal ?? "-",
          event.resource ?? "-",
          detailsText(event.details),
        ]);
        return table(columns, rows, terminal.palette.faint);
      },
    };
  },
});

export const audit: Group = {
  name: "audit",
  summary: "the log of changes and their principals",
  commands: [list],
};

/** Returns details in one line: limits in their mini-language, then all that is not empty. */
function detailsText(details: Readonly<Record<string, JsonValue>>): string {
  const { limits, ...others } = details;
  const parts = Array.isArray(limits) ? limits.map(limitText) : [];
  // A switch that is set to false, or removed, says nothing else.
  const isSwitch =
    Object.keys(details).length === 1 && ("disabled" in details || "cascade" in details);
  for (const [name, value] of Object.entries(others)) {
    if (isSwitch || !isEmpty(value)) parts.push(`${name}=${plain(value ?? "none")}`);
  }
  return parts.length === 0 ? "-" : parts.join(" ");
}

function limitText(limit: JsonValue): string {
  if (typeof limit !== "object" || limit === null || Array.isArray(limit)) return plain(limit);
  try {
    return Limit.fromJSON(limit as LimitJson).toString();
  } catch {
    // Another library may have written other fields.
    return plain(limit);
  }
}

function isEmpty(value: JsonValue): boolean {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function plain(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
