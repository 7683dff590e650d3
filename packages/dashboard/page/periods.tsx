/** Closed periods of quotas and sessions: what each granted, and what was used of it. */

import type { PeriodsJson } from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { wholeAmount } from "./format.ts";
import { useLoaded } from "./loaded.ts";
import { Note, Nothing, Numbers } from "./parts.tsx";

const COLUMNS = ["Period", "Resource", "Entity", "Limit", "Used", "Granted", "Carried", "Late"];

export function ClosedPeriods({ entity, resource }: { entity?: string; resource?: string }) {
  const key = [namespace.value, entity, resource].join(" ");
  const { data, error } = useLoaded(key, (signal) =>
    get<PeriodsJson>("periods", { entity, resource }, signal),
  );
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  if (data === undefined) return <Nothing>Reading…</Nothing>;
  if (data.periods.length === 0) {
    return (
      <Nothing>
        No period was closed.{" "}
        {data.countedBy === "aggregator" &&
          "The aggregator writes them; without one there are none."}
      </Nothing>
    );
  }
  return (
    <>
      <PeriodTable periods={data.periods} />
      {!data.complete && <Note kind="warn">There are earlier ones, which are not shown.</Note>}
    </>
  );
}

/** Returns a time without the zone that a later one names as well. */
function withoutZone(time: string, later: string): string {
  const zone = later.slice(later.lastIndexOf(" "));
  return time.endsWith(zone) ? time.slice(0, -zone.length) : time;
}

function PeriodTable({ periods }: { periods: PeriodsJson["periods"] }) {
  return (
    <Numbers columns={COLUMNS}>
      {periods.map((period) => (
        <tr key={`${period.end} ${period.resource} ${period.limitName} ${period.entityId}`}>
          <th scope="row" class="span">
            {withoutZone(period.start, period.end)} <span>to {period.end}</span>
          </th>
          <td>{period.resource}</td>
          <td class="mono">{period.entityId}</td>
          <td class="mono">{period.limitName}</td>
          {[period.used, period.granted, period.carried, period.late].map((amount, at) => (
            <td key={COLUMNS[at + 4]}>
              {amount === undefined ? "–" : wholeAmount(period.limitName, amount)}
            </td>
          ))}
        </tr>
      ))}
    </Numbers>
  );
}
