/** Entities: search, the hierarchy as a tree, and one of them in detail. */

import { useEffect, useState } from "preact/hooks";
import type { EntityJson, EntityPageJson } from "../src/wire.ts";
import { get, namespace } from "./api.ts";
import { EntityDetail } from "./entity.tsx";
import { useLoaded } from "./loaded.ts";
import { Card, Note, Nothing } from "./parts.tsx";
import { hrefOf, openPath, route } from "./state.ts";

export function Entities() {
  const id = route.value.query.get("id");
  return (
    <div class={`split ${id === null ? "" : "has-detail"}`}>
      <h1 class="visually-hidden">Entities</h1>
      <EntityList chosen={id} />
      {id === null ? (
        <Card title="Entity" class="detail">
          <Nothing>Choose an entity to see its buckets, limits, usage and audit trail.</Nothing>
        </Card>
      ) : (
        <EntityDetail key={`${namespace.value} ${id}`} id={id} />
      )}
    </div>
  );
}

function EntityList({ chosen }: { chosen: string | null }) {
  const [text, setText] = useState("");
  const [prefix, setPrefix] = useState("");
  const [more, setMore] = useState<{ key: string; pages: readonly EntityPageJson[] }>();
  useEffect(() => {
    const waiting = setTimeout(() => setPrefix(text.trim()), 200);
    return () => clearTimeout(waiting);
  }, [text]);
  const key = `${namespace.value} ${prefix}`;
  // With a search, children are found too; without one, the tree begins at its roots.
  const roots = prefix === "" ? "1" : null;
  const { data, error } = useLoaded(key, (signal) =>
    get<EntityPageJson>("entities", { prefix, roots }, signal),
  );
  const pages = [...(data === undefined ? [] : [data]), ...(more?.key === key ? more.pages : [])];
  const entities = pages.flatMap((page) => page.entities);
  const cursor = pages.at(-1)?.cursor ?? null;
  const loadMore = async () => {
    const page = await get<EntityPageJson>("entities", { prefix, roots, cursor });
    setMore({ key, pages: [...(more?.key === key ? more.pages : []), page] });
  };
  const isMissing = prefix !== "" && data !== undefined && !entities.some((e) => e.id === prefix);
  return (
    <Card title="Entities" class="list">
      <label class="search">
        <span class="visually-hidden">Search by the beginning of an id</span>
        <input
          type="search"
          placeholder="Id begins with…"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      {error !== undefined && <Note kind="bad">{error}</Note>}
      {isMissing && (
        <p class="hint">
          <a href={hrefOf("entities", { id: prefix })}>
            Open <code>{prefix}</code>
          </a>{" "}
          as an id: an entity may have limits and buckets without being created.
        </p>
      )}
      {data !== undefined && entities.length === 0 && !isMissing && (
        <Nothing>No entity was created in this namespace.</Nothing>
      )}
      <ul class="tree">
        {entities.map((entity) => (
          <TreeNode key={entity.id} entity={entity} chosen={chosen} />
        ))}
      </ul>
      {cursor !== null && (
        <button type="button" class="quiet wide" onClick={() => void loadMore()}>
          Show more
        </button>
      )}
    </Card>
  );
}

function TreeNode({ entity, chosen }: { entity: EntityJson; chosen: string | null }) {
  const [chosenOpen, setOpen] = useState<boolean>();
  const open = chosenOpen ?? openPath.value.includes(entity.id);
  const hasName = entity.name !== null && entity.name !== entity.id;
  return (
    <li>
      <div class={`node ${entity.id === chosen ? "chosen" : ""}`}>
        {entity.hasChildren === true ? (
          <button
            type="button"
            class="twist"
            aria-expanded={open}
            aria-label={`Children of ${entity.id}`}
            onClick={() => setOpen(!open)}
          >
            <span aria-hidden="true">{open ? "▾" : "▸"}</span>
          </button>
        ) : (
          <span class="twist" />
        )}
        <a
          class="node-link"
          href={hrefOf("entities", { id: entity.id })}
          aria-current={entity.id === chosen ? "true" : undefined}
        >
          <span class="mono">{entity.id}</span>
          {hasName && <span class="faint name">{entity.name}</span>}
        </a>
        <span class="node-badges">
          {entity.isOrphan === true && (
            <span class="badge refuses" title="The parent does not exist, so it limits nothing">
              parent {entity.parentId} is missing
            </span>
          )}
          {entity.cascade && (
            <span class="badge" title="Acquires also consume from the parent">
              cascades
            </span>
          )}
        </span>
      </div>
      {open && <Children id={entity.id} chosen={chosen} />}
    </li>
  );
}

function Children({ id, chosen }: { id: string; chosen: string | null }) {
  const { data, error } = useLoaded(`${namespace.value} ${id}`, (signal) =>
    get<EntityPageJson>("children", { id }, signal),
  );
  if (error !== undefined) return <Note kind="bad">{error}</Note>;
  return (
    <ul class="tree">
      {data?.entities.map((entity) => (
        <TreeNode key={entity.id} entity={entity} chosen={chosen} />
      ))}
      {data !== undefined && data.entities.length >= 200 && (
        <li class="more">Only the first 200 children are shown; search for the others.</li>
      )}
    </ul>
  );
}
