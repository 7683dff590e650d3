/** The audit log: which principal changed what, and the difference each change made. */

import { useEffect, useState } from "preact/hooks";
import type { AuditEventJson, AuditJson } from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { deedOf, isOfLimits } from "./deeds.ts";
import { time } from "./format.ts";
import { useLoaded } from "./loaded.ts";
import { Card, Differences, EntityLink, Note, Nothing } from "./parts.tsx";
import { hrefOf, route } from "./state.ts";

export function Audit() {
  const given = route.value.query.get("subject") ?? "";
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  return (
    <div class="stack">
      <h1 class="visually-hidden">Audit</h1>
      <Card title="Audit log" hint="newest first">
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault();
            const subject = text.trim();
            location.hash = hrefOf("audit", subject === "" ? {} : { subject });
          }}
        >
          <label>
            <span class="field-label">
              Entity, <code>$SYSTEM</code> or <code>$RESOURCE:name</code>
            </span>
            <input
              class="mono"
              type="search"
              placeholder="everything"
              value={text}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary">
            Filter
          </button>
        </form>
        <AuditList key={given} subject={given} />
      </Card>
    </div>
  );
}

export function AuditList({ subject }: { subject: string }) {
  const key = `${namespace.value} ${subject}`;
  const { data, error } = useLoaded(key, (signal) => get<AuditJson>("audit", { subject }, signal));
  const [more, setMore] = useState<AuditJson>();
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  if (data === undefined) return <Nothing>Reading…</Nothing>;
  const events = [...data.events, ...(more?.events ?? [])];
  if (events.length === 0) return <Nothing>Nothing was changed.</Nothing>;
  const after = more === undefined ? data.after : more.after;
  const loadMore = async () => {
    const page = await get<AuditJson>("audit", { subject, after });
    setMore({ events: [...(more?.events ?? []), ...page.events], after: page.after });
  };
  return (
    <>
      <ol class="events">
        {events.map((event) => (
          <Event key={event.eventId} event={event} />
        ))}
      </ol>
      {after !== null && (
        <button type="button" class="quiet wide" onClick={() => void loadMore()}>
          Show more
        </button>
      )}
    </>
  );
}

function Event({ event }: { event: AuditEventJson }) {
  return (
    <li>
      <div class="event-head">
        <span class={event.principal === null ? "faint" : "principal"}>
          {event.principal ?? "unnamed"}
        </span>{" "}
        {deedOf(event)} <Subject event={event} />
        <time class="faint" dateTime={event.timestamp}>
          {time(event.timestamp)}
        </time>
      </div>
      {isOfLimits(event) && <Differences differences={event.differences} />}
    </li>
  );
}

function Subject({ event }: { event: AuditEventJson }) {
  const { subject, resource } = event;
  const of = isOfLimits(event) ? "of " : "";
  if (subject === "$SYSTEM") return <b>{of}the system</b>;
  if (subject.startsWith("$RESOURCE:")) {
    return (
      <span>
        {of}
        <b class="mono">{subject.slice("$RESOURCE:".length)}</b>
      </span>
    );
  }
  return (
    <span>
      {of}
      {event.details.level === "children" && "the children of "}
      <EntityLink id={subject} />
      {resource !== null && resource !== "_default_" && (
        <span>
          {" "}
          for <b class="mono">{resource}</b>
        </span>
      )}
    </span>
  );
}
