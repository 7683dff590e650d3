/** One entity: its place in the hierarchy, its buckets, its usage and its audit trail. */

import { useEffect, useState } from "preact/hooks";
import type { AllowanceJson, EntityDetailJson, PlaceJson } from "../src/wire.ts";
import { get } from "./api.ts";
import { AuditList } from "./audit.tsx";
import { SOURCE_NAMES, time } from "./format.ts";
import { LimitEditor } from "./limit-editor.tsx";
import { useLoaded } from "./loaded.ts";
import { BalanceBar, Card, EntityLink, Limits, Note, Nothing } from "./parts.tsx";
import { openPath, session } from "./state.ts";
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
        <Limits limits={allowance.limits} />
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
        <p class="faint small">no bucket yet: everything is available</p>
      ) : (
        allowance.balances.map((balance) => (
          <BalanceBar key={balance.limitName} balance={balance} atMs={atMs} />
        ))
      )}
    </div>
  );
}
