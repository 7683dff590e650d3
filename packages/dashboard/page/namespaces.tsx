/** Namespaces: switch, register, delete, recover and purge. */

import { useState } from "preact/hooks";
import type { NamespaceJson, NamespacesJson } from "../src/wire.ts";
import { get, post } from "./api.ts";
import { time } from "./format.ts";
import { useLoaded } from "./loaded.ts";
import { Card, Note, Nothing, SureButton } from "./parts.tsx";
import { loadSession, session, switchNamespace } from "./state.ts";

export function Namespaces() {
  const { data, error, reload } = useLoaded("namespaces", (signal) =>
    get<NamespacesJson>("namespaces", {}, signal),
  );
  const [name, setName] = useState("");
  const [failure, setFailure] = useState<string>();
  const change = async (body: Readonly<Record<string, string>>) => {
    setFailure(undefined);
    try {
      await post("namespaces", body);
      setName("");
      reload();
      await loadSession();
    } catch (refused) {
      setFailure((refused as Error).message);
    }
  };
  const shown = error ?? failure;
  return (
    <div class="stack">
      <h1 class="visually-hidden">Namespaces</h1>
      <Card title="Namespaces" hint="each has its own entities, limits and usage">
        {shown !== undefined && <Note kind="bad">{shown}</Note>}
        {data === undefined && <Nothing>Reading…</Nothing>}
        {data?.namespaces.map((each) => (
          <NamespaceRow
            key={each.namespaceId}
            namespace={each}
            change={(body) => void change(body)}
          />
        ))}
        {session.value?.readOnly === false && (
          <form
            class="filters"
            onSubmit={(event) => {
              event.preventDefault();
              void change({ action: "register", name: name.trim() });
            }}
          >
            <label>
              <span class="field-label">New namespace</span>
              <input
                class="mono"
                required
                value={name}
                onInput={({ currentTarget }) => setName(currentTarget.value)}
              />
            </label>
            <button type="submit" class="primary">
              Register
            </button>
          </form>
        )}
      </Card>
    </div>
  );
}

function NamespaceRow(props: {
  namespace: NamespaceJson;
  change: (body: Readonly<Record<string, string>>) => void;
}) {
  const { name, namespaceId, status, since } = props.namespace;
  const isShown = status === "active" && session.value?.namespace === name;
  const mayChange = session.value?.readOnly === false;
  return (
    <div class="row">
      <div class="row-head">
        <span class="row-name">
          <span class="mono">{name}</span>
          <span class={`badge status-${status}`}>{status}</span>
        </span>
        <span class="faint">
          <code>{namespaceId}</code> {since !== null && `since ${time(since)}`}
        </span>
        <span class="row-actions">
          {status === "active" && (
            <button
              type="button"
              class="quiet"
              disabled={isShown}
              onClick={() => void switchNamespace(name)}
            >
              {isShown ? "Shown" : "Show"}
              <span class="visually-hidden"> {name}</span>
            </button>
          )}
          {mayChange && status === "active" && !isShown && (
            <SureButton
              label="Delete"
              question="Its limiters will refuse. It can be recovered."
              act={() => props.change({ action: "delete", name })}
            />
          )}
          {mayChange && status === "deleted" && (
            <button
              type="button"
              class="quiet"
              onClick={() => props.change({ action: "recover", namespaceId })}
            >
              Recover
            </button>
          )}
          {mayChange && status !== "active" && (
            <SureButton
              label="Purge"
              question="All its data is removed for good."
              act={() => props.change({ action: "purge", namespaceId })}
            />
          )}
        </span>
      </div>
    </div>
  );
}
