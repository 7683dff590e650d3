/** Usage: tokens and requests by hour, day and month, as a stacked chart, a table and a file. */

import { useMemo, useState } from "preact/hooks";
import type { UsageJson } from "../src/wire.ts";
import { addressOf, get, namespace } from "./api.ts";
import { colourOf, StackedChart } from "./chart.tsx";
import { compactAmount, time, wholeAmount } from "./format.ts";
import { useLoaded } from "./loaded.ts";
import { Card, Note, Nothing, Numbers } from "./parts.tsx";
import { ClosedPeriods } from "./periods.tsx";
import { theme } from "./theme.ts";
import { chartWindows, type TimeRange, type UsageWindow, WINDOW_SECONDS } from "./windows.ts";

/** The last hours, or from one day to another, both included. */
type Range = { readonly hours: number } | { readonly from: string; readonly to: string };

const RANGES = [
  { name: "24 hours", window: "hourly", hours: 24 },
  { name: "7 days", window: "hourly", hours: 168 },
  { name: "30 days", window: "daily", hours: 720 },
  { name: "12 months", window: "monthly", hours: 8784 },
] as const;
const DAY_MS = 86_400_000;
const WINDOWS: readonly { readonly name: string; readonly window: UsageWindow }[] = [
  { name: "hour", window: "hourly" },
  { name: "day", window: "daily" },
  { name: "month", window: "monthly" },
];

export function Usage() {
  const [preset, setPreset] = useState(0);
  const [own, setOwn] = useState(() => lastWeek());
  const [entity, setEntity] = useState("");
  const [resource, setResource] = useState("");
  const [group, setGroup] = useState<"entity" | "resource">("resource");
  const chosen = RANGES[preset];
  const range: Range = chosen === undefined ? own : { hours: chosen.hours };
  return (
    <div class="stack">
      <h1 class="visually-hidden">Usage</h1>
      <Card
        title="Usage"
        hint="what was consumed, net of refunds"
        actions={<Presets chosen={preset} choose={setPreset} />}
      >
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          {chosen === undefined && <OwnRange range={own} change={setOwn} />}
          <label>
            <span class="field-label">Entity</span>
            <input
              class="mono"
              placeholder="all"
              value={entity}
              onChange={({ currentTarget }) => setEntity(currentTarget.value.trim())}
            />
          </label>
          <label>
            <span class="field-label">Resource</span>
            <input
              class="mono"
              placeholder="all"
              value={resource}
              onChange={({ currentTarget }) => setResource(currentTarget.value.trim())}
            />
          </label>
          <label>
            <span class="field-label">Stacked by</span>
            <select
              value={group}
              onChange={({ currentTarget }) =>
                setGroup(currentTarget.value === "entity" ? "entity" : "resource")
              }
            >
              <option value="resource">resource</option>
              <option value="entity">entity</option>
            </select>
          </label>
        </form>
        <UsageChart
          entity={entity}
          resource={resource}
          window={chosen?.window ?? own.window}
          range={range}
          group={group}
        />
      </Card>
      {(entity !== "" || resource !== "") && (
        <Card title="Closed periods" hint="of quotas and sessions, those that ended last first">
          <ClosedPeriods entity={entity} resource={resource} />
        </Card>
      )}
    </div>
  );
}

function Presets(props: { chosen: number; choose: (preset: number) => void }) {
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">Range</legend>
      {[...RANGES, { name: "Dates" }].map(({ name }, at) => (
        <button
          key={name}
          type="button"
          aria-pressed={at === props.chosen}
          onClick={() => props.choose(at)}
        >
          {name}
        </button>
      ))}
    </fieldset>
  );
}

interface OwnDates {
  readonly from: string;
  readonly to: string;
  readonly window: UsageWindow;
}

/** Shows two days and the windows between them. */
function OwnRange(props: { range: OwnDates; change: (range: OwnDates) => void }) {
  const { range, change } = props;
  const { from, to, window } = range;
  return (
    <>
      <label>
        <span class="field-label">From</span>
        <input
          type="date"
          value={from}
          max={to}
          onChange={({ currentTarget: { value } }) => value && change({ ...range, from: value })}
        />
      </label>
      <label>
        <span class="field-label">To</span>
        <input
          type="date"
          value={to}
          min={from}
          onChange={({ currentTarget: { value } }) => value && change({ ...range, to: value })}
        />
      </label>
      <label>
        <span class="field-label">Windows</span>
        <select
          value={window}
          onChange={({ currentTarget: { value } }) =>
            change({ ...range, window: value as UsageWindow })
          }
        >
          {WINDOWS.map((each) => (
            <option key={each.window} value={each.window}>
              {each.name}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

function lastWeek(): OwnDates {
  const now = Date.now();
  return { from: day(now - 7 * DAY_MS), to: day(now), window: "daily" };
}

/** Returns the day of a time in the time zone of the reader. */
function day(ms: number): string {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** Returns the times of a range. A window belongs to it when it begins in it. */
function timesOf(range: Range): TimeRange {
  if ("hours" in range) {
    const now = Date.now();
    const start = new Date(now - range.hours * 3_600_000).toISOString();
    return { start, end: new Date(now).toISOString() };
  }
  const start = new Date(`${range.from}T00:00:00`).toISOString();
  return { start, end: new Date(`${range.to}T23:59:59.999`).toISOString() };
}

function timeAt(seconds: number): string {
  return time(new Date(seconds * 1000).toISOString());
}

export function UsageChart(props: {
  entity?: string;
  resource?: string;
  window: UsageWindow;
  range: Range;
  group: "entity" | "resource";
  compact?: boolean;
}) {
  const { entity, resource, window, range, group } = props;
  const span = "hours" in range ? range.hours : `${range.from} ${range.to}`;
  const key = [namespace.value, entity, resource, window, span, group].join(" ");
  // A new range begins at a new time.
  const times = useMemo(() => timesOf(range), [key]);
  // The clock of the store may be ahead of this one, so the last hours have no end.
  const end = "hours" in range ? undefined : times.end;
  const query = { entity, resource, window, start: times.start, end, group };
  const { data, error } = useLoaded(key, (signal) => get<UsageJson>("usage", query, signal));
  const [chosen, setChosen] = useState("");
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  if (data === undefined) return <div class="chart-wait" />;
  if (data.windows.length === 0) {
    return <Nothing>No usage was counted in this range.</Nothing>;
  }
  const requests = data.limitNames.includes("requests") ? [] : ["requests"];
  const names = [...data.limitNames, ...data.peakNames, ...requests];
  const name = names.includes(chosen) ? chosen : (names[0] ?? "requests");
  return (
    <UsageShown
      data={data}
      window={window}
      times={times}
      names={names}
      name={name}
      choose={setChosen}
      compact={props.compact === true}
      file={addressOf("usage.csv", query)}
    />
  );
}

function UsageShown(props: {
  data: UsageJson;
  window: UsageWindow;
  times: TimeRange;
  names: readonly string[];
  name: string;
  choose: (name: string) => void;
  compact: boolean;
  file: string;
}) {
  const { data, window, times, name } = props;
  const seconds = useMemo(() => chartWindows(window, times, data.windows), [data, window, times]);
  const series = useMemo(() => {
    const places = new Map(data.windows.map((start, at) => [Date.parse(start) / 1000, at]));
    return data.groups.map((group) => ({
      name: group.name,
      values: seconds.map((start) => group.values[name]?.[places.get(start) ?? -1] ?? 0),
    }));
  }, [data, seconds, name]);
  const [first = 0, last = first] = [seconds[0], seconds.at(-1)];
  const isPeak = data.peakNames.includes(name);
  const totals = series.map(({ values }) =>
    values.reduce((sum, value) => (isPeak ? Math.max(sum, value) : sum + value), 0),
  );
  return (
    <>
      <div class="chart-head">
        <fieldset class="segments">
          <legend class="visually-hidden">What is shown</legend>
          {props.names.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === name}
              onClick={() => props.choose(each)}
            >
              {each}
            </button>
          ))}
        </fieldset>
        <a class="button quiet" href={props.file} download="usage.csv">
          Download CSV
        </a>
      </div>
      <StackedChart
        seconds={seconds}
        gap={WINDOW_SECONDS[window]}
        series={series}
        height={props.compact ? 180 : 300}
        limitName={name}
        isStacked={!isPeak}
        label={`${name} from ${timeAt(first)} to ${timeAt(last)}; the table below has the numbers`}
        theme={theme.value}
      />
      <ul class="legend">
        {series.map((each, at) => (
          <li key={each.name}>
            <span class="swatch" style={{ background: colourOf(at) }} />
            <span class="mono">{each.name}</span> <b>{compactAmount(name, totals[at] ?? 0)}</b>
          </li>
        ))}
      </ul>
      {!data.complete && (
        <Note kind="warn">
          There is more than fits here; narrow the range, or name an entity or a resource.
        </Note>
      )}
      <details>
        <summary>Show as a table</summary>
        <UsageTable data={data} name={name} />
      </details>
    </>
  );
}

function UsageTable({ data, name }: { data: UsageJson; name: string }) {
  return (
    <Numbers columns={["Window", ...data.groups.map((group) => group.name)]}>
      {data.windows.map((start, at) => (
        <tr key={start}>
          <th scope="row">{time(start)}</th>
          {data.groups.map((group) => (
            <td key={group.name}>{wholeAmount(name, group.values[name]?.[at] ?? 0)}</td>
          ))}
        </tr>
      ))}
    </Numbers>
  );
}
