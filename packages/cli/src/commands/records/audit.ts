/** `audit`: the log of changes. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { type Group, leaf } from "../../frame/command.ts";
import { detailsText } from "../../terminal/details-text.ts";
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
