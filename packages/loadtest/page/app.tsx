/** The page of a load test: how much load, what comes of it, and charts of both. */

import { compact, whole } from "@zae-limiter/dashboard/page/format.ts";
import { Card, LiveAndTheme, Note } from "@zae-limiter/dashboard/page/parts.tsx";
import { theme } from "@zae-limiter/dashboard/page/theme.ts";
import { useState } from "preact/hooks";
import type { UiState } from "../src/ui/ui-wire.ts";
import { LineChart } from "./line-chart.tsx";
import { act, connected, type Load, problem, run } from "./state.ts";

export function App() {
  const shown = run.value;
  const trouble = problem.value ?? shown?.problem ?? undefined;
  return (
    <>
      <Header title={shown?.title ?? ""} />
      <main id="main">
        {trouble !== undefined && <Note kind="bad">{trouble}</Note>}
        {shown !== undefined && (
          <>
            <Controls shown={shown} />
            <Numbers shown={shown} />
            <Charts shown={shown} />
            {shown.errors.length > 0 && <Errors shown={shown} />}
          </>
        )}
      </main>
      <footer>
        <span>
          store <code>{shown?.store}</code>
        </span>
        <span>{shown?.classes.join(", ")}</span>
        <span>{shown?.workers === 1 ? "1 worker" : `${shown?.workers} workers`}</span>
      </footer>
    </>
  );
}

function Header(props: { title: string }) {
  return (
    <header class="top">
      <div class="brand">
        <b>zae-limiter</b>
      </div>
      <h1 class="mono">{props.title}</h1>
      <div class="tools">
        <LiveAndTheme connected={connected.value} />
      </div>
    </header>
  );
}

function Controls(props: { shown: UiState }) {
  const { state, users, rate, elapsedSeconds } = props.shown;
  const [wanted, setWanted] = useState<Load>({ users, rate });
  const isIdle = state === "idle";
  const isOpen = wanted.rate !== null;
  const submit = (event: Event) => {
    event.preventDefault();
    void act(isIdle ? "start" : "change", wanted);
  };
  return (
    <Card title="Load" hint={isIdle ? "nothing runs" : `${state} for ${elapsedSeconds} s`}>
      <form class="load" onSubmit={submit}>
        <label>
          Users{" "}
          <input
            type="number"
            min={1}
            value={wanted.users}
            onInput={({ currentTarget }) =>
              setWanted({ ...wanted, users: Number(currentTarget.value) })
            }
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={isOpen}
            disabled={!isIdle}
            onChange={() => setWanted({ ...wanted, rate: isOpen ? null : 100 })}
          />{" "}
          on a schedule
        </label>
        {isOpen && (
          <label>
            Arrivals per second{" "}
            <input
              type="number"
              min={1}
              value={wanted.rate ?? 1}
              onInput={({ currentTarget }) =>
                setWanted({ ...wanted, rate: Number(currentTarget.value) })
              }
            />
          </label>
        )}
        <button type="submit" class="primary" disabled={state === "stopping"}>
          {isIdle ? "Start" : "Change"}
        </button>
        {!isIdle && (
          <button
            type="button"
            class="danger"
            disabled={state === "stopping"}
            onClick={() => void act("stop")}
          >
            Stop
          </button>
        )}
      </form>
    </Card>
  );
}

function milliseconds(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  return ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`;
}

/** Returns what calls cost, where the store says it: only DynamoDB does. */
function priced(shown: UiState): readonly (readonly [string, string])[] {
  if (shown.writeUnitsPerAcquire === 0) return [];
  return [
    ["WCU/acquire", shown.writeUnitsPerAcquire.toFixed(2)],
    ["$/million", shown.dollarsPerMillion.toFixed(2)],
  ];
}

function Numbers(props: { shown: UiState }) {
  const { shown } = props;
  const last = shown.intervals.at(-1);
  const cells: readonly (readonly [string, string])[] = [
    ["acquires/s", whole(last?.perSecond ?? 0)],
    ["at work", whole(last?.users ?? 0)],
    ["granted", compact(shown.granted)],
    ["refused", compact(shown.refused)],
    ["degraded", compact(shown.degraded)],
    ["failed", compact(shown.failed)],
    ["p50", milliseconds(shown.p50Ms)],
    ["p95", milliseconds(shown.p95Ms)],
    ["p99", milliseconds(shown.p99Ms)],
    ["max", milliseconds(shown.maxMs)],
    ["calls/acquire", shown.callsPerAcquire.toFixed(2)],
    ...priced(shown),
  ];
  return (
    <Card title="The whole run">
      <dl class="figures">
        {cells.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Charts(props: { shown: UiState }) {
  const { intervals } = props.shown;
  const seconds = intervals.map(({ at }) => at);
  return (
    <>
      <Card title="Acquires per second">
        <LineChart
          seconds={seconds}
          label="Acquires, refusals and errors per second"
          theme={theme.value}
          format={compact}
          lines={[
            { name: "acquires", values: intervals.map(({ perSecond }) => perSecond) },
            { name: "refused", values: intervals.map((each) => each.refusedPerSecond) },
            { name: "errors", values: intervals.map((each) => each.errorsPerSecond) },
          ]}
        />
      </Card>
      <Card title="Latency">
        <LineChart
          seconds={seconds}
          label="Percentiles of the latency by second"
          theme={theme.value}
          format={milliseconds}
          lines={[
            { name: "p50", values: intervals.map(({ p50Ms }) => p50Ms) },
            { name: "p95", values: intervals.map(({ p95Ms }) => p95Ms) },
            { name: "p99", values: intervals.map(({ p99Ms }) => p99Ms) },
          ]}
        />
      </Card>
    </>
  );
}

function Errors(props: { shown: UiState }) {
  return (
    <Card title="Errors">
      <ul>
        {props.shown.errors.map(({ message, count }) => (
          <li key={message}>
            {whole(count)} × {message}
          </li>
        ))}
      </ul>
    </Card>
  );
}
