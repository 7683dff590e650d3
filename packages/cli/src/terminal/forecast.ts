/** Forecasts when a limit with a period is empty. */

import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import { shownName } from "./bars.ts";

const MINUTE_MS = 60_000;

/**
 * Returns when a limit is empty, in milliseconds since 1970, if as much is consumed in the rest of
 * its period as until now; `undefined` where it resets before that, or has no period.
 */
export function emptyAtMs(status: LimitStatus, nowMs: number): number | undefined {
  const { available, used = 0, periodStartMs, resetsAtMs } = status;
  if (periodStartMs === undefined || resetsAtMs === undefined) return undefined;
  const elapsedMs = nowMs - periodStartMs;
  if (used <= 0 || elapsedMs <= 0) return undefined;
  const emptyMs = nowMs + (Math.max(0, available) / used) * elapsedMs;
  return emptyMs < resetsAtMs ? Math.floor(emptyMs) : undefined;
}

/** Returns a line for each limit that is empty before it resets, if the pace stays as it is. */
export function forecastLines(statuses: readonly LimitStatus[], nowMs: number): string[] {
  return statuses.flatMap((status) => {
    const emptyMs = emptyAtMs(status, nowMs);
    if (emptyMs === undefined || status.available <= 0) return [];
    const { rule } = status.limit;
    const zone = rule?.kind === "quota" ? rule.timeZone : "UTC";
    const time = localText(zone, Math.floor(emptyMs / MINUTE_MS) * MINUTE_MS);
    return [`${status.entityId} ${shownName(status)} is empty on ${time} at this pace`];
  });
}
