/** Forecasts when a limit with a period is empty. */

import { emptyAtMs } from "@zae-limiter/limiter/core/forecast.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import { shownName } from "./bars.ts";

const MINUTE_MS = 60_000;

/** Returns when a limit is empty if the pace stays; `undefined` where it has no period. */
export function statusEmptyAtMs(status: LimitStatus, nowMs: number): number | undefined {
  const { available, used = 0, periodStartMs: startMs, resetsAtMs: endMs } = status;
  if (startMs === undefined || endMs === undefined) return undefined;
  return emptyAtMs({ available, used, startMs, endMs }, nowMs);
}

/** Returns a line for each limit that is empty before it resets, if the pace stays as it is. */
export function forecastLines(statuses: readonly LimitStatus[], nowMs: number): string[] {
  return statuses.flatMap((status) => {
    const emptyMs = statusEmptyAtMs(status, nowMs);
    if (emptyMs === undefined || status.available <= 0) return [];
    const { rule } = status.limit;
    const zone = rule?.kind === "quota" ? rule.timeZone : "UTC";
    const time = localText(zone, Math.floor(emptyMs / MINUTE_MS) * MINUTE_MS);
    return [`${status.entityId} ${shownName(status)} is empty on ${time} at this pace`];
  });
}
