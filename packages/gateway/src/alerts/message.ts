/** The body of a webhook: an alert as JSON, or as a message for Slack. */

import { formatMoney, isMoney } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { resetZone } from "@zae-limiter/limiter/domain/limit-status.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import type { Alert } from "@zae-limiter/limiter/records/alerts/alert-item.ts";

/** Returns `80 % of usd of team-a are used: $400.00 of $500.00, resets 2026-12-01 00:00 …`. */
export function sentenceOf(alert: Alert): string {
  const { percent, limitName, entityId, resource, used, granted, periodEndMs } = alert;
  const show = (amount: number) =>
    isMoney(limitName) ? formatMoney(limitName, amount) : amount.toLocaleString("en-US");
  const place = resource === "@all" ? "" : ` for ${resource}`;
  const amounts = `${show(used)} of ${show(granted)}`;
  const zone = resetZone({ limit: Limit.parse(alert.limit) });
  const resets = `resets ${localText(zone, periodEndMs)}`;
  return `${percent} % of ${limitName} of ${entityId}${place} is used: ${amounts}, ${resets}`;
}

/** Returns the body that is signed and posted. The same alert has the same body each time. */
export function bodyOf(alert: Alert, namespace: string, format: "json" | "slack"): string {
  if (format === "slack") return JSON.stringify({ text: sentenceOf(alert) });
  return JSON.stringify({
    type: "limit.alert",
    timestamp: isoOf(alert.atMs),
    data: {
      id: alert.id,
      namespace,
      entity_id: alert.entityId,
      resource: alert.resource,
      limit_name: alert.limitName,
      limit: alert.limit,
      percent: alert.percent,
      used: alert.used,
      granted: alert.granted,
      period_start: isoOf(alert.periodStartMs),
      period_end: isoOf(alert.periodEndMs),
      text: sentenceOf(alert),
    },
  });
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
