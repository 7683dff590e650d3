/** One entity: its place in the hierarchy, its buckets, its usage and its audit trail. */

import { useEffect, useState } from "preact/hooks";
import type {
  AllowanceJson,
  AncestorJson,
  BalanceJson,
  EntityDetailJson,
  PlaceJson,
} from "../src/wire.ts";
import { Alerts } from "./alerts.tsx";
import { get } from "./api.ts";
import { AuditList } from "./audit.tsx";
import { SOURCE_NAMES, time } from "./format.ts";
import { LimitEditor } from "./limit-editor.tsx";
import { useLoaded } from "./loaded.ts";
import { BalanceBar, Card, EntityLink, Limits, Mark, Note, Nothing } from "./parts.tsx";
import { ClosedPeriods } from "./periods.tsx";
import { availableAfter } from "./refill.ts";
import { openPath, secondsSince, session } from "./state.ts";
import { UsageChart } from "./usage.tsx";

const REFRESH_MS = 2000;

export function EntityDetail({ id }: { id: string }) {
  const { data, error, atMs, reload } = useLoaded(
    id,
    (signal) => get<EntityDetailJson>("entity", { id }, signal),
    REFRESH_MS,
  );
  const path = data?.ancestors.join("\n");
  useEffect(() => {
    if (path !== undefined) openPath.value = path.split("\n");
  }, [path]);
  return (
    <div class="stack detail">
      {error !== undefined && <Note kind="bad">{error}</Note>}
      <Head id={id} detail={data} />
      <Card title="Buckets" hint="refilling live, with the level that each limit came from">
        {data === undefined ? (
          <Nothing>Reading…</Nothing>
        ) : data.allowances.length === 0 ? (
          <Nothing>No bucket yet, and no resource has limits of its own.</Nothing>
        ) : (
          data.allowances.map((allowance) => (
            <Allowance
              key={allowance.resource}
              id={id}
              allowance={allowance}
              atMs={atMs}
              saved={reload}
            />
          ))
        )}
      </Card>
      <Card title="Usage" hint="by hour, the last two days">
        <UsageChart entity={id} window="hourly" range={{ hours: 48 }} group="resource" compact />
      </Card>
      <Card title="Alerts" hint="percentages of quotas that were reached, the newest first">
        <Alerts entity={id} />
      </Card>
      <Card title="Closed periods" hint="of quotas and sessions, those that ended last first">
        <ClosedPeriods entity={id} />
      </Card>
      <Card title="Audit trail">
        <AuditList subject={id} />
      </Card>
    </div>
  );
}

function Head({ id, detail }: { id: string; detail: EntityDetailJson | undefined }) {
  const entity = detail?.entity ?? undefined;
  const metadata = Object.entries(entity?.metadata ?? {});
  return (
    <section class="card">
      <nav class="crumbs" aria-label="Hierarchy">
        <a href="#/entities">All entities</a>
        {[...(detail?.ancestors ?? [])].reverse().map((ancestor) => (
          <span key={ancestor}>
            {" / "}
            <EntityLink id={ancestor} />
          </span>
        ))}
      </nav>
      <h2 class="entity-id mono">{id}</h2>
      <p class="facts">
        {entity?.name !== null && entity?.name !== undefined && entity.name !== id && (
          <span class="entity-name">{entity.name}</span>
        )}
        {entity?.cascade === true && <span class="badge">cascades to its parent</span>}
        {entity?.createdAt != null && <span class="faint">created {time(entity.createdAt)}</span>}
        {detail !== undefined && detail.entity === null && (
          <span class="faint">never created; it is limited all the same</span>
        )}
      </p>
      {metadata.length > 0 && (
        <dl class="metadata">
          {metadata.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function Allowance(props: {
  id: string;
  allowance: AllowanceJson;
  atMs: number;
  saved: () => void;
}) {
  const { id, allowance, atMs } = props;
  const [editing, setEditing] = useState(false);
  const { resource, source } = allowance;
  const place: PlaceJson = { level: "entity", entityId: id, resource };
  return (
    <div class="allowance">
      <div class="allowance-head">
        <h3 class="mono">{resource}</h3>
        <span class={`badge source-${source ?? "none"}`}>
          {source === null ? "no limits" : `from ${SOURCE_NAMES[source]}`}
        </span>
        <Limits limits={allowance.limits} words={allowance.words} />
        {allowance.state !== "enforced" && (
          <Mark mark={allowance.state} at={allowance.disabledAt?.replace("_", " ") ?? null} />
        )}
        {session.value?.readOnly === false && !editing && (
          <button type="button" class="quiet" onClick={() => setEditing(true)}>
            {source === "entity" ? "Edit" : "Override"}
            <span class="visually-hidden"> limits of {resource}</span>
          </button>
        )}
      </div>
      {editing && (
        <LimitEditor
          place={place}
          stored={source === "entity" ? allowance.limits : []}
          suggested={allowance.limits}
          done={() => {
            setEditing(false);
            props.saved();
          }}
        />
      )}
      {allowance.balances.length === 0 ? (
        <p class="faint small">
          {allowance.state === "disabled"
            ? "no bucket yet, and every acquire is refused"
            : "no bucket yet: everything is available"}
        </p>
      ) : (
        allowance.balances.map((balance) => (
          <BalanceBar key={balance.limitName} balance={balance} atMs={atMs} />
        ))
      )}
      {allowance.ancestors.map((ancestor) => (
        <Ancestor key={ancestor.entityId} ancestor={ancestor} atMs={atMs} />
      ))}
    </div>
  );
}

/** Shows a bucket that calls consume from as well, and whether it is the one that refuses. */
function Ancestor({ ancestor, atMs }: { ancestor: AncestorJson; atMs: number }) {
  const { entityId, state, balances } = ancestor;
  const refuses = state === "disabled" || balances.some(isRefusing(secondsSince(atMs)));
  return (
    <div class="ancestor">
      <p class="ancestor-head small">
        also from <EntityLink id={entityId} />
        {state !== "enforced" && <Mark mark={state} />}
        {refuses && <span class="badge refuses">refuses now</span>}
        {balances.length === 0 && <span class="faint">no bucket yet</span>}
      </p>
      {balances.map((balance) => (
        <BalanceBar key={balance.limitName} balance={balance} atMs={atMs} />
      ))}
    </div>
  );
}

/** Returns whether a limit has no whole token and refuses; a soft or bypassed one does not. */
function isRefusing(elapsedSeconds: number): (balance: BalanceJson) => boolean {
  return (balance) =>
    balance.mark === undefined && Math.floor(availableAfter(balance, elapsedSeconds)) < 1;
}
