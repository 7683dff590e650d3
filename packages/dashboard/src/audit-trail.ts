/** The audit log with what each change of limits has changed. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { Limit, type LimitJson } from "@zae-limiter/limiter/domain/limit.ts";
import type { AuditEvent } from "@zae-limiter/limiter/records/audit.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { differencesOf } from "./differences.ts";
import type { AuditEventJson, AuditJson, DifferenceJson } from "./wire.ts";

const PAGE = 50;
/** Events of one subject that are read to find what was there before. */
const EARLIER_MAX = 200;

/** Events of a subject, or of the whole namespace, newest first. */
export async function auditTrail(
  repository: Repository,
  options: { subject: string | undefined; after: string | undefined },
): Promise<AuditJson> {
  const { subject, after } = options;
  const range = { limit: PAGE, ...defined({ after }) };
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
    after: events.length < PAGE ? null : (events.at(-1)?.eventId ?? null),
  };
}

/** `history`: the events of the same subject, newest first. */
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

/** What an event changed of the limits of its place, compared with the event before. */
function differencesIn(
  event: AuditEvent,
  history: readonly AuditEvent[],
): readonly DifferenceJson[] {
  if (!isOfLimits(event)) return [];
  const earlier = history.find(
    (other) =>
      other.eventId < event.eventId && other.resource === event.resource && isOfLimits(other),
  );
  return differencesOf(earlier === undefined ? [] : limitsIn(earlier), limitsIn(event));
}

function isOfLimits({ action }: AuditEvent): boolean {
  return action === "limits_set" || action === "limits_deleted";
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
