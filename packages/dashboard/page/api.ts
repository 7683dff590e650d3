/** Requests to the handler that served this page. */

import { signal } from "@preact/signals";
import type { ErrorJson } from "../src/wire.ts";

/** The folder of the page, wherever it is mounted. */
const BASE = `${location.pathname.replace(/\/?$/, "/")}api/`;

/** The namespace that is shown; empty for the one that the dashboard was started with. */
export const namespace = signal(new URLSearchParams(location.search).get("ns") ?? "");

/** Named by the folder: several pages may be mounted on one server. */
const KEY_NAME = `zae-limiter-key ${BASE}`;

/** The key that the login hands over in the fragment; absent where the page has another guard. */
const key = keyOf();

function keyOf(): string | undefined {
  const given = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  try {
    if (given === undefined) return localStorage.getItem(KEY_NAME) ?? undefined;
    localStorage.setItem(KEY_NAME, given);
  } catch {
    // Without storage the key lasts until the page is loaded again.
  }
  history.replaceState(null, "", location.pathname + location.search);
  return given;
}

export type Query = Readonly<Record<string, string | null | undefined>>;

/** Returns the address of a path of the handler, with the namespace that is shown. */
export function addressOf(path: string, query: Query = {}): string {
  const given = Object.entries({ ...query, ns: namespace.value || undefined, key });
  const set = given.flatMap(([name, value]) => (value ? [[name, value] as [string, string]] : []));
  const text = new URLSearchParams(set).toString();
  return BASE + path + (text === "" ? "" : `?${text}`);
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return answered(await fetch(addressOf(path, query), signal === undefined ? {} : { signal }));
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json", "x-zae-limiter-dashboard": "1" };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  return answered(await fetch(addressOf(path), signal === undefined ? init : { ...init, signal }));
}

async function answered<T>(response: Response): Promise<T> {
  const body = (await response.json()) as T & ErrorJson;
  if (response.ok) return body;
  throw new Error(body.message);
}
