/** Alerts of an entity: percentages of its quotas that were reached, and their delivery. */

import type { AlertsJson } from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { time, wholeAmount } from "./format.ts";
import { useLoaded } from "./loaded.ts";
import { Note, Nothing, Numbers } from "./parts.tsx";

const COLUMNS = ["Written", "Resource", "Limit", "Percent", "Used", "Granted", "Delivery"];
const STATES = { open: "open", delivered: "delivered", given_up: "given up" } as const;

export function Alerts({ entity }: { entity: string }) {
  const { data, error } = useLoaded(`${namespace.value} ${entity}`, (signal) =>
    get<AlertsJson>("alerts", { entity }, signal),
  );
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  if (data === undefined) return <Nothing>Reading…</Nothing>;
  if (data.alerts.length === 0) return <Nothing>No percentage was reached.</Nothing>;
  return (
    <Numbers columns={COLUMNS}>
      {data.alerts.map((alert) => (
        <tr key={alert.id}>
          <th scope="row">{time(alert.at)}</th>
          <td>{alert.resource}</td>
          <td class="mono">{alert.limitName}</td>
          <td>{alert.percent} %</td>
          <td>{wholeAmount(alert.limitName, alert.used)}</td>
          <td>{wholeAmount(alert.limitName, alert.granted)}</td>
          <td title={alert.problem ?? undefined}>{STATES[alert.state]}</td>
        </tr>
      ))}
    </Numbers>
  );
}
