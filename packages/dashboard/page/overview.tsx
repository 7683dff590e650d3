/** The overview: what is exhausted, what is close to it, the busiest, and live refusals. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { BalanceJson, BusyJson, OverviewJson } from "../src/wire.ts";
import { FirstStep } from "./first-step.tsx";
import { clock, compact, compactAmount, seconds, whole } from "./format.ts";
import { BalanceBar, Card, EntityLink, Nothing } from "./parts.tsx";
import { refilled } from "./refill.ts";
import { live, now, overview, secondsSince, session } from "./state.ts";

export function Overview() {
  const read = overview.value;
  const arrived = useRef({ read, atMs: now.peek() });
  if (arrived.current.read !== read) arrived.current = { read, atMs: performance.now() };
  const { atMs } = arrived.current;
  const seen = read && refilled(read, secondsSince(atMs));
  return (
    <div class="stack">
      <h1 class="visually-hidden">Overview</h1>
      {seen?.complete === true && seen.buckets === 0 && <FirstStep />}
      <Tiles seen={seen} />
      <div class="columns">
        <div class="stack">
          <Card
            title="Empty or in debt"
            hint="without a whole token; refuses until it refills, unless it is soft"
          >
            <Balances
              balances={seen?.empty}
              count={seen?.emptyCount ?? 0}
              atMs={atMs}
              none="No bucket is empty."
            />
          </Card>
          <Busiest seen={seen} />
        </div>
        <div class="stack">
          <Card title="Close to exhaustion" hint="less than a fifth left">
            <Balances
              balances={seen?.scarce}
              count={seen?.scarceCount ?? 0}
              atMs={atMs}
              none="No limit is close to exhaustion."
            />
          </Card>
          {session.value?.live === true && <Refusals />}
        </div>
      </div>
    </div>
  );
}

function Tiles({ seen }: { seen: OverviewJson | undefined }) {
  const calls = live.value;
  const shown = (value: number | undefined) => (value === undefined ? "…" : compact(value));
  return (
    <div class="tiles">
      <Tile label="Buckets" value={shown(seen?.buckets)} detail={walkOf(seen)} />
      <Tile
        label="Empty"
        detail="no whole token left"
        value={shown(seen?.emptyCount)}
        kind={kindOf(seen?.emptyCount, "bad")}
      />
      <Tile
        label="In debt"
        detail="below zero"
        value={shown(seen?.debtCount)}
        kind={kindOf(seen?.debtCount, "bad")}
      />
      <Tile
        label="Scarce"
        detail="less than a fifth left"
        value={shown(seen?.scarceCount)}
        kind={kindOf(seen?.scarceCount, "warn")}
      />
      {(seen?.disabledCount ?? 0) > 0 && (
        <Tile
          label="Switched off"
          detail="resources and entities"
          value={shown(seen?.disabledCount)}
          kind="bad"
        />
      )}
      {(seen?.bypassCount ?? 0) > 0 && (
        <Tile
          label="Bypassed"
          detail="granted and counted"
          value={shown(seen?.bypassCount)}
          kind="warn"
        />
      )}
      {session.value?.live === true && (
        <Tile
          label="Refused"
          value={shown(calls?.refused)}
          detail={`of ${compact((calls?.granted ?? 0) + (calls?.refused ?? 0))} calls seen`}
          kind={kindOf(calls?.refused, "warn")}
        />
      )}
      {session.value?.live === true && <Rate />}
    </div>
  );
}

function kindOf(count: number | undefined, kind: string): string {
  return (count ?? 0) > 0 ? kind : "";
}

function walkOf(seen: OverviewJson | undefined): string {
  if (seen === undefined) return "reading";
  if (!seen.complete) return "still reading";
  return `as of ${clock(seen.atMs)}`;
}

function Tile(props: { label: string; value: string; detail: string; kind?: string }) {
  return (
    <div class={`tile ${props.kind ?? ""}`}>
      <span class="tile-label">{props.label}</span>
      <span class="tile-value">{props.value}</span>
      <span class="tile-detail">{props.detail}</span>
    </div>
  );
}

const POINTS = 60;

/** Calls per second of the last minute, granted and refused, as a small chart. */
function Rate() {
  const points = useSignal<readonly { granted: number; refused: number }[]>([]);
  const last = useRef(live.peek());
  const calls = live.value;
  useEffect(() => {
    const before = last.current;
    last.current = calls;
    if (calls === undefined || before === undefined) return;
    const passed = Math.max(0.5, (calls.atMs - before.atMs) / 1000);
    const point = {
      granted: (calls.granted - before.granted) / passed,
      refused: (calls.refused - before.refused) / passed,
    };
    points.value = [...points.value, point].slice(-POINTS);
  }, [calls]);
  const shown = points.value;
  const highest = Math.max(1, ...shown.map(({ granted, refused }) => granted + refused));
  const newest = shown.at(-1);
  return (
    <div class="tile wide">
      <span class="tile-label">Calls per second</span>
      <span class="tile-value">{((newest?.granted ?? 0) + (newest?.refused ?? 0)).toFixed(1)}</span>
      <svg class="spark" viewBox={`0 0 ${POINTS} 20`} preserveAspectRatio="none" aria-hidden="true">
        {shown.map(({ granted, refused }, at) => {
          const x = POINTS - shown.length + at;
          const refusedHeight = (refused / highest) * 20;
          const grantedHeight = (granted / highest) * 20;
          return (
            // A point is its place in time.
            <g key={at}>
              <rect
                class="granted"
                x={x}
                y={20 - grantedHeight}
                width={0.8}
                height={grantedHeight}
              />
              <rect
                class="refused"
                x={x}
                y={20 - grantedHeight - refusedHeight}
                width={0.8}
                height={refusedHeight}
              />
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Balances(props: {
  balances: readonly BalanceJson[] | undefined;
  count: number;
  atMs: number;
  none: string;
}) {
  const { balances } = props;
  if (balances === undefined) return <Nothing>Reading buckets…</Nothing>;
  if (balances.length === 0) return <Nothing>{props.none}</Nothing>;
  const more = props.count - balances.length;
  return (
    <>
      <ul class="balances">
        {balances.slice(0, 8).map((balance) => (
          <li key={`${balance.entityId} ${balance.resource} ${balance.limitName}`}>
            <div class="who">
              <EntityLink id={balance.entityId} /> <span class="faint">{balance.resource}</span>
            </div>
            <BalanceBar balance={balance} atMs={props.atMs} />
          </li>
        ))}
      </ul>
      {more + Math.max(0, balances.length - 8) > 0 && (
        <p class="more">and {whole(props.count - Math.min(8, balances.length))} more</p>
      )}
    </>
  );
}

function Busiest({ seen }: { seen: OverviewJson | undefined }) {
  const chosen = useSignal("");
  const all = seen?.busiest ?? [];
  const names = all.map(({ limitName }) => limitName);
  const used = all.filter(({ resources }) => resources.length > 0);
  const busiest =
    all.find(({ limitName }) => limitName === chosen.value) ?? used.at(-1) ?? all.at(-1);
  return (
    <Card
      title="Busiest"
      hint="consumed and not refilled yet"
      actions={
        names.length > 1 && (
          <fieldset class="segments">
            <legend class="visually-hidden">Limit</legend>
            {names.map((name) => (
              <button
                key={name}
                type="button"
                aria-pressed={name === busiest?.limitName}
                onClick={() => {
                  chosen.value = name;
                }}
              >
                {name}
              </button>
            ))}
          </fieldset>
        )
      }
    >
      {busiest === undefined || busiest.resources.length === 0 ? (
        <Nothing>Nothing was consumed lately.</Nothing>
      ) : (
        <div class="halves">
          <Ranking title="Entities" limitName={busiest.limitName} rows={busiest.entities} />
          <Ranking title="Resources" limitName={busiest.limitName} rows={busiest.resources} />
        </div>
      )}
    </Card>
  );
}

function Ranking(props: { title: string; limitName: string; rows: readonly BusyJson[] }) {
  const highest = Math.max(1, ...props.rows.map(({ inUse }) => inUse));
  return (
    <div>
      <h3>{props.title}</h3>
      <ol class="ranking">
        {props.rows.map(({ name, resource, inUse }) => (
          <li key={`${name} ${resource ?? ""}`}>
            <span class="rank-name">
              {resource === undefined ? <span class="mono">{name}</span> : <EntityLink id={name} />}{" "}
              {resource !== undefined && <span class="faint">{resource}</span>}
            </span>
            <span class="rank-value">{compactAmount(props.limitName, Math.max(0, inUse))}</span>
            <span class="rank-bar" style={{ width: `${(Math.max(0, inUse) / highest) * 100}%` }} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Refusals() {
  const refusals = live.value?.refusals ?? [];
  return (
    <Card title="Live refusals" hint="of the limiter in this process">
      {refusals.length === 0 ? (
        <Nothing>No refusal since this page was opened.</Nothing>
      ) : (
        <ol class="refusals" aria-live="off">
          {refusals.slice(0, 10).map((refusal, at) => (
            // The same refusal may come twice.
            <li key={at}>
              <time class="faint">{clock(refusal.atMs)}</time>
              <EntityLink id={refusal.entityId} />
              <span class="faint">{refusal.resource}</span>
              <span class="badge">{refusal.limitName}</span>
              {refusal.ancestorId !== null && (
                <span class="faint">
                  of <EntityLink id={refusal.ancestorId} />
                </span>
              )}
              <span class="retry">again in {seconds(refusal.retryAfterSeconds)}</span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
