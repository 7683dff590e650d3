/** The frame: navigation, namespace, connection, theme, and the view of the route. */

import type { FunctionComponent } from "preact";
import { Audit } from "./audit.tsx";
import { Entities } from "./entities.tsx";
import { LimitsView } from "./limits.tsx";
import { Namespaces } from "./namespaces.tsx";
import { Overview } from "./overview.tsx";
import { Card, LiveAndTheme, Note, Nothing } from "./parts.tsx";
import { connected, failure, hrefOf, route, session, switchNamespace } from "./state.ts";
import { Usage } from "./usage.tsx";

const VIEWS: readonly (readonly [name: string, title: string, view: FunctionComponent])[] = [
  ["overview", "Overview", Overview],
  ["entities", "Entities", Entities],
  ["limits", "Limits", LimitsView],
  ["usage", "Usage", Usage],
  ["audit", "Audit", Audit],
  ["namespaces", "Namespaces", Namespaces],
];

export function App() {
  const [, , View = NoSuchPage] = VIEWS.find(([name]) => name === route.value.view) ?? [];
  return (
    <>
      <button type="button" class="skip" onClick={focusMain}>
        Skip to content
      </button>
      <Header />
      <main id="main" tabIndex={-1}>
        {failure.value !== undefined && <Note kind="bad">{failure.value}</Note>}
        {session.value !== undefined && <View key={session.value.namespace} />}
      </main>
      <Footer />
    </>
  );
}

function NoSuchPage() {
  return (
    <div class="stack">
      <h1 class="visually-hidden">No such page</h1>
      <Card title="No such page">
        <Nothing>There is no page “{route.value.view}”.</Nothing>
        <a href={hrefOf("overview")}>Go to the overview</a>
      </Card>
    </div>
  );
}

/** Moves the focus to the main part; the hash of the address is the route, so this is no link. */
function focusMain(): void {
  document.getElementById("main")?.focus();
}

function Header() {
  const shown = session.value;
  return (
    <header class="top">
      <div class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="8" class="logo" />
          <rect x="8" y="15" width="4" height="9" rx="1" />
          <rect x="14" y="10" width="4" height="14" rx="1" />
          <rect x="20" y="6" width="4" height="18" rx="1" />
        </svg>
        <b>zae-limiter</b>
      </div>
      <nav aria-label="Views">
        {VIEWS.map(([name, title]) => (
          <a
            key={name}
            href={hrefOf(name)}
            aria-current={route.value.view === name ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="tools">
        {shown?.readOnly === true && <span class="badge">read-only</span>}
        <label>
          <span class="visually-hidden">Namespace</span>
          <select
            value={shown?.namespace ?? ""}
            onChange={({ currentTarget }) => void switchNamespace(currentTarget.value)}
          >
            {(shown?.namespaces ?? []).map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <LiveAndTheme connected={connected.value} />
      </div>
    </header>
  );
}

function Footer() {
  const shown = session.value;
  if (shown === undefined) return null;
  return (
    <footer>
      <span>
        store <code>{shown.store}</code>
      </span>
      {shown.schemaVersion !== null && <span>schema {shown.schemaVersion}</span>}
      {shown.lambdaVersion !== null && <span>aggregator {shown.lambdaVersion}</span>}
      <span>zae-limiter {shown.version}</span>
      {shown.principal !== null && <span>signed in as {shown.principal}</span>}
    </footer>
  );
}
