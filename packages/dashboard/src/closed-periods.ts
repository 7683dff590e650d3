/** Statements of closed periods, with their times as the clock of their zone shows them. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { localText } from "@zae-limiter/limiter/domain/zone.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { PeriodsJson } from "./wire.ts";

const SHOWN = 100;

/** Returns the statements of an entity, of a resource or of both, the newest first. */
export async function closedPeriods(
  { usage }: Repository,
  entityId: string | undefined,
  resource: string | undefined,
): Promise<PeriodsJson> {
  const { periods, cursor } = await usage.periods({
    ...defined({ entityId, resource }),
    limit: SHOWN,
  });
  return {
    periods: periods.map(
      ({ startMs, endMs, timeZone = "UTC", kind: _, allowance: __, ...period }) => ({
        ...period,
        start: localText(timeZone, startMs),
        end: localText(timeZone, endMs),
      }),
    ),
    countedBy: usage.countedBy,
    complete: cursor === undefined,
  };
}
