/** The port between `local` and the kinds of stores that it starts. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

/** The user that a server runs as; without ids it is the one of the command. */
export interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** A server that is installed here. */
export interface Engine {
  readonly name: string;
  readonly command: string;
  readonly owner?: Owner;
  args(port: number, data: string): readonly string[];
  /** Makes the folder of its data, where there is none. */
  prepare?(data: string, signal: AbortSignal): Promise<void>;
}

export interface EngineSearch {
  /** The name of an engine, or the path of its program; absent: the first found. */
  readonly engine?: string | undefined;
  readonly jar?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of a project, whose packages count. */
  readonly folder?: string | undefined;
}

/** The port of a server, and what programs use of it. */
export interface StorePlace {
  readonly port: number;
  /** The table, on DynamoDB. */
  readonly table?: string;
  readonly namespace: string;
}

/** A kind of store. */
export interface LocalStore {
  /** The names that its engines have in the state. */
  readonly engines: readonly string[];
  /** The port without `--port`. */
  readonly port: number;
  /** Whether it has tables, whose usage an aggregator counts. Its data end with the server then. */
  readonly hasTables: boolean;
  /** The signal on which it ends, without waiting for its clients. */
  readonly stopSignal: NodeJS.Signals;
  /** Returns a server, or throws a `CommandFailure` that says how to get one. */
  find(search: EngineSearch): Engine;
  endpoint(port: number): string;
  /** Returns the address that `ZAEL_URL` takes. */
  url(place: StorePlace): string;
  answers(port: number, timer: Timer): Promise<boolean>;
  /** Creates what the library needs in it; what is there already stays. */
  create(place: StorePlace): Promise<void>;
}

/** A server that has just started is slow at first. */
export const CREATE_TIMEOUT_MS = 20_000;

/** Creates the schema of a store that needs one, and registers the namespace. */
export async function migrateAndRegister(url: string, namespace: string): Promise<void> {
  const { Repository } = await import("@zae-limiter/limiter/repository/repository.ts");
  await Repository.migrate(url, { timeoutMs: CREATE_TIMEOUT_MS });
  const repo = await Repository.open(url, { timeoutMs: CREATE_TIMEOUT_MS });
  try {
    await repo.namespaces.register(namespace);
  } finally {
    await repo.close();
  }
}

/** Adds the namespace to an address, unless it is the default. */
export function inNamespace(url: string, namespace: string): string {
  if (namespace === "default") return url;
  return `${url}${url.includes("?") ? "&" : "?"}namespace=${encodeURIComponent(namespace)}`;
}
