/** The limits of all levels, edited in place. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type {
  EntityLimitsJson,
  LimitsJson,
  LimitTextsJson,
  ListedResourcesJson,
  PlaceJson,
  StoredLimitsJson,
} from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { EDIT_SYSTEM, hasNoLimits, SystemCommand } from "./first-step.tsx";
import { LimitEditor } from "./limit-editor.tsx";
import { useLoaded } from "./loaded.ts";
import { Card, EntityLink, Limits, Mark, Note, Nothing } from "./parts.tsx";
import { route, session } from "./state.ts";

export function LimitsView() {
  const { data, error, reload } = useLoaded(namespace.value, (signal) =>
    get<LimitsJson>("limits", {}, signal),
  );
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  return (
    <div class="stack">
      <h1 class="visually-hidden">Limits</h1>
      <p class="lead">
        The most specific level that has limits applies: <b>entity</b>, then <b>entity default</b>,
        then <b>children of the parent</b>, then <b>resource</b>, then <b>system</b>.
      </p>
      <Card title="System" hint="for everything that no other level has limits for">
        {data !== undefined && hasNoLimits(data) && <Begin />}
        {data !== undefined && (
          <Row
            place={{ level: "system" }}
            limits={data.system}
            words={data.systemWords}
            saved={reload}
            isOpen={route.value.query.get("edit") === EDIT_SYSTEM.edit}
          >
            everything
            {data.onUnavailable !== null && (
              <span class="badge">when the store is down: {data.onUnavailable}</span>
            )}
          </Row>
        )}
      </Card>
      <Card title="Resources" hint="for all entities without limits of their own">
        {data?.resources.map((stored) => (
          <Row
            key={stored.resource}
            place={stored}
            limits={stored.limits}
            words={stored.words}
            saved={reload}
          >
            <span class="mono">{stored.resource}</span>
            <Switch state={stored.state} />
          </Row>
        ))}
        {data?.resources.length === 0 && <Nothing>No resource has limits.</Nothing>}
        <AddRow label="Add a resource" fields={["resource"]} saved={reload} />
      </Card>
      {data !== undefined && (
        <>
          <EntityLevels kind={CHILDREN} listed={data.children} saved={reload} />
          <EntityLevels kind={ENTITIES} listed={data.entities} saved={reload} />
        </>
      )}
    </div>
  );
}

function Begin() {
  return (
    <Note>
      Begin here: no limits are stored yet.{" "}
      {session.value?.readOnly === false && (
        <>
          Edit the limits below, for example <code>rpm:60</code> for 60 requests a minute, or run{" "}
        </>
      )}
      {session.value?.readOnly === true && "Run "}
      <SystemCommand />
    </Note>
  );
}

/** The kinds of limits that entities store: for themselves, and for the entities below them. */
const ENTITIES = {
  path: "entity-limits",
  title: "Entities",
  hint: "limits of their own",
  all: "for all resources (entity default)",
  none: "No entity has limits of its own.",
  add: "Add an entity",
  levels: ["entity_default", "entity"],
} as const;
const CHILDREN = {
  path: "children-limits",
  title: "Children of an entity",
  hint: "for each entity directly below it without limits of its own",
  all: "for all resources",
  none: "No entity has limits for its children.",
  add: "Add limits for children",
  levels: ["parent_default", "parent"],
} as const;
type Kind = typeof ENTITIES | typeof CHILDREN;

function EntityLevels({
  kind,
  listed,
  saved,
}: {
  kind: Kind;
  listed: ListedResourcesJson;
  saved: () => void;
}) {
  const choices = [...(listed.hasDefaults ? [""] : []), ...listed.resources];
  const [chosen, setChosen] = useState<string>();
  const resource = chosen !== undefined && choices.includes(chosen) ? chosen : (choices[0] ?? "");
  const [pages, setPages] = useState<{
    key: string;
    more: readonly StoredLimitsJson[];
    cursor: string | null;
  }>();
  const key = `${namespace.value} ${resource}`;
  const { data, reload } = useLoaded(key, (signal) =>
    get<EntityLimitsJson>(kind.path, { resource }, signal),
  );
  const more = pages?.key === key ? pages.more : [];
  const cursor = pages?.key === key ? pages.cursor : (data?.cursor ?? null);
  const refresh = () => {
    setPages(undefined);
    reload();
    saved();
  };
  const loadMore = async () => {
    const page = await get<EntityLimitsJson>(kind.path, { resource, cursor });
    setPages({ key, more: [...more, ...page.limits], cursor: page.cursor });
  };
  const all = [...(data?.limits ?? []), ...more];
  return (
    <Card
      title={kind.title}
      hint={kind.hint}
      actions={
        choices.length > 0 && (
          <label class="field">
            <span class="visually-hidden">Resource</span>
            <select
              value={resource}
              onChange={({ currentTarget }) => setChosen(currentTarget.value)}
            >
              {choices.map((name) => (
                <option key={name} value={name}>
                  {name === "" ? kind.all : `for ${name}`}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      {all.map((stored) => (
        <Row
          key={stored.entityId}
          place={stored}
          limits={stored.limits}
          words={stored.words}
          saved={refresh}
        >
          <EntityLink id={stored.entityId ?? ""} />
          <Switch state={stored.state} />
        </Row>
      ))}
      {choices.length === 0 && <Nothing>{kind.none}</Nothing>}
      {cursor !== null && (
        <button type="button" class="quiet wide" onClick={() => void loadMore()}>
          Show more
        </button>
      )}
      <AddRow
        label={kind.add}
        fields={["entityId", "resource"]}
        levels={kind.levels}
        saved={refresh}
      />
    </Card>
  );
}

/** Shows the switch that is stored at a level, if any. */
function Switch({ state }: { state: string | null | undefined }) {
  if (state === "disabled" || state === "bypass") return <Mark mark={state} />;
  return state === "enabled" ? <span class="badge">switched on</span> : null;
}

function Row(props: {
  place: PlaceJson;
  limits: readonly string[];
  words?: LimitTextsJson["words"] | undefined;
  saved: () => void;
  /** Whether the editor is open at first. */
  isOpen?: boolean;
  children: ComponentChildren;
}) {
  const [isEditing, setEditing] = useState(props.isOpen === true);
  const editing = isEditing && session.value?.readOnly === false;
  const { level, resource, entityId } = props.place;
  const place: PlaceJson = {
    level,
    ...(resource === undefined ? {} : { resource }),
    ...(entityId === undefined ? {} : { entityId }),
  };
  return (
    <div class={`row ${editing ? "open" : ""}`}>
      <div class="row-head">
        <span class="row-name">{props.children}</span>
        <Limits limits={props.limits} words={props.words} />
        {session.value?.readOnly === false && !editing && (
          <button type="button" class="quiet" onClick={() => setEditing(true)}>
            Edit<span class="visually-hidden"> {entityId ?? resource ?? "system"}</span>
          </button>
        )}
      </div>
      {editing && (
        <LimitEditor
          place={place}
          stored={props.limits}
          done={() => {
            setEditing(false);
            props.saved();
          }}
        />
      )}
    </div>
  );
}

type Field = "entityId" | "resource";

/** Shows a form for a place that has no limits yet. */
function AddRow(props: {
  label: string;
  fields: readonly Field[];
  /** The level for all resources, and that for one. */
  levels?: Kind["levels"];
  saved: () => void;
}) {
  const [open, setOpen] = useState(false);
  const [place, setPlace] = useState<PlaceJson>();
  const [values, setValues] = useState<Readonly<Record<Field, string>>>({
    entityId: "",
    resource: "",
  });
  if (session.value?.readOnly !== false) return null;
  if (!open) {
    return (
      <button type="button" class="quiet add" onClick={() => setOpen(true)}>
        + {props.label}
      </button>
    );
  }
  const close = () => {
    setOpen(false);
    setPlace(undefined);
    setValues({ entityId: "", resource: "" });
    props.saved();
  };
  if (place !== undefined) {
    return (
      <div class="row open">
        <p class="row-name mono">
          {place.entityId} {place.resource}
        </p>
        <LimitEditor place={place} stored={[]} done={close} />
      </div>
    );
  }
  const isOptional = (field: Field) => field === "resource" && props.fields.length > 1;
  return (
    <form
      class="row open inline"
      onSubmit={(event) => {
        event.preventDefault();
        setPlace(placeOf(props.levels, values));
      }}
    >
      {props.fields.map((field) => (
        <label key={field}>
          <span class="field-label">
            {field === "entityId" ? "Entity" : "Resource"}
            {isOptional(field) && " (empty: all)"}
          </span>
          <input
            class="mono"
            required={!isOptional(field)}
            value={values[field]}
            onInput={({ currentTarget }) => setValues({ ...values, [field]: currentTarget.value })}
          />
        </label>
      ))}
      <button type="submit" class="primary">
        Next
      </button>
      <button type="button" class="quiet" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

function placeOf(
  levels: Kind["levels"] | undefined,
  values: Readonly<Record<Field, string>>,
): PlaceJson {
  const [entityId, resource] = [values.entityId.trim(), values.resource.trim()];
  if (levels === undefined) return { level: "resource", resource };
  if (resource === "") return { level: levels[0], entityId };
  return { level: levels[1], entityId, resource };
}
