/** State that all views share: the session, the route, live events, and a clock. */

import { computed, signal } from "@preact/signals";
import type { LiveJson, OverviewJson, SessionJson } from "../src/wire.ts";
import { addressOf, get, namespace } from "./api.ts";

export const session = signal<SessionJson | undefined>(undefined);
export const overview = signal<OverviewJson | undefined>(undefined);
export const live = signal<LiveJson | undefined>(undefined);
export const connected = signal(false);
export const failure = signal<string | undefined>(undefined);

/** Moves several times a second, for bars that refill. Milliseconds since the page was loaded. */
export const now = signal(performance.now());
setInterval(() => {
  if (!document.hidden) now.value = performance.now();
}, 250);

/** Returns the seconds since data came; a component that calls this is drawn again as they pass. */
export function secondsSince(atMs: number): number {
  return Math.max(0, now.value - atMs) / 1000;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** The view and its parameters: `#/entities?id=key-1`. */
export const route = computed(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?", 2);
  return { view: path === "" ? "overview" : path, query: new URLSearchParams(query) };
});

export function hrefOf(view: string, query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `#/${view}${text === "" ? "" : `?${text}`}`;
}

/** The ancestors of the entity that is shown: the tree is open down to it. */
export const openPath = signal<readonly string[]>([]);

export async function loadSession(): Promise<void> {
  try {
    session.value = await get<SessionJson>("session");
    failure.value = undefined;
  } catch (error) {
    failure.value = (error as Error).message;
  }
}

let events: EventSource | undefined;

/** Listens to the handler; the browser connects again by itself when the connection is lost. */
export function connect(): void {
  events?.close();
  overview.value = undefined;
  live.value = undefined;
  const source = new EventSource(addressOf("events"));
  source.addEventListener("open", () => {
    connected.value = true;
  });
  source.addEventListener("error", () => {
    connected.value = false;
  });
  source.addEventListener("overview", ({ data }: MessageEvent<string>) => {
    overview.value = JSON.parse(data) as OverviewJson;
  });
  source.addEventListener("live", ({ data }: MessageEvent<string>) => {
    live.value = JSON.parse(data) as LiveJson;
  });
  events = source;
}

/** Shows another namespace. */
export async function switchNamespace(name: string): Promise<void> {
  namespace.value = name;
  const url = new URL(location.href);
  url.searchParams.set("ns", name);
  history.replaceState(null, "", url);
  await loadSession();
  connect();
}
