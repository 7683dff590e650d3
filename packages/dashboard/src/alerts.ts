/** The alerts of an entity: which percentages of its quotas were reached, and their delivery. */

import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { AlertsJson } from "./wire.ts";

/** How many alerts the page shows, the newest first. */
const SHOWN = 20;

export async function alertsOf(
  { alerts }: Repository,
  entityId: string | undefined,
): Promise<AlertsJson> {
  const found = await alerts.list({
    limit: SHOWN,
    ...(entityId === undefined ? {} : { entityId }),
  });
  return {
    alerts: found.map((alert) => ({
      id: alert.id,
      entityId: alert.entityId,
      resource: alert.resource,
      limitName: alert.limitName,
      percent: alert.percent,
      used: alert.used,
      granted: alert.granted,
      at: new Date(alert.atMs).toISOString(),
      state: alert.delivery.state,
      problem: alert.delivery.problem ?? null,
    })),
  };
}
