/**
 * Clients of Redis and Valkey, by their shape. A client of the caller's is duplicated, with the
 * resending of unanswered commands switched off: a call that is sent again counts twice. The
 * duplicate is ours to close.
 */

import { show } from "../../domain/check.ts";
import { InfrastructureError, ValidationError } from "../../domain/errors/errors.ts";

/** The longest pause before the next attempt to connect. */
const RECONNECT_MS_MAX = 500;

/**
 * A client of yours, by its shape: `Redis` or `Cluster` of ioredis or iovalkey; `createClient`,
 * `createCluster` or `createSentinel` of node-redis. It is duplicated, never used and never closed.
 *
 * @example
 * ```ts
 * import type { RedisClient } from 'zae-limiter/redis';
 * const kinds: (keyof RedisClient)[] = ['duplicate'];
 * console.log(kinds.length); // 1
 * ```
 */
export interface RedisClient {
  /** Makes another connection with the same options. */
  duplicate(...args: never[]): unknown;
}

/** A client that this library has made, or made of the caller's. */
export interface OwnClient {
  readonly isCluster: boolean;
  readonly isReady: boolean;
  /** Waits for the attempt to connect that is under way, and fails as it does. */
  connected(): Promise<void>;
  /** Sends a command; `key` decides the node of a cluster. */
  send(args: readonly string[], key: string | undefined): Promise<unknown>;
  /** Connects again, to the new primary. */
  reconnect(): void;
  close(): void;
}

/** The members of ioredis and iovalkey that are used. */
interface IoRedis {
  readonly status: string;
  readonly isCluster?: boolean;
  duplicate(...args: unknown[]): IoRedis;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  call(name: string, ...args: readonly string[]): Promise<unknown>;
  on(event: string, listener: (error?: unknown) => void): unknown;
  off(event: string, listener: (error?: unknown) => void): unknown;
}

/** The members of node-redis that are used. */
interface NodeRedis {
  readonly isReady?: boolean;
  readonly isOpen: boolean;
  duplicate(overrides: object): NodeRedis;
  connect(): Promise<unknown>;
  destroy(): unknown;
  sendCommand(...args: readonly unknown[]): Promise<unknown>;
  on(event: string, listener: (error?: unknown) => void): NodeRedis;
  off(event: string, listener: (error?: unknown) => void): unknown;
}

/**
 * After a failover that an operator starts, the old primary takes writes until Sentinel makes it a
 * replica, about ten seconds later, and then forgets them: a client has to leave it before.
 */
const SCAN_MS = 1000;

const IO_OPTIONS = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  // Leaves the old primary as soon as a Sentinel names another one.
  failoverDetector: true,
  lazyConnect: true,
  stringNumbers: false,
  commandTimeout: undefined,
  // Asks again soon whether the server has loaded its data: by default after ten seconds.
  maxLoadingRetryTime: RECONNECT_MS_MAX,
  retryStrategy: (attempts: number) => Math.min(attempts * 20, RECONNECT_MS_MAX),
  // 1: connect again, to the new primary, and send nothing again.
  reconnectOnError: (error: Error) => (/^(?:READONLY|UNBLOCKED)/.test(error.message) ? 1 : false),
};

const IO_CLUSTER_OPTIONS = {
  // Nodes connect when they are first used: without the queue, calls that come meanwhile fail.
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  lazyConnect: true,
  scaleReads: "master",
  // A command whose connection was closed may have been done.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  slotsRefreshInterval: 5000,
  clusterRetryStrategy: IO_OPTIONS.retryStrategy,
  redisOptions: {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    stringNumbers: false,
    commandTimeout: undefined,
  },
};

/** Options of node-redis: it sends nothing again, but keeps commands for a later connection. */
const NODE_OPTIONS = { disableOfflineQueue: true, commandOptions: undefined };
const NODE_CLUSTER_OPTIONS = { commandOptions: undefined };
const NODE_SENTINEL_OPTIONS = {
  commandOptions: undefined,
  // Else a command is sent again when the primary is lost before it has answered.
  maxCommandRediscovers: 0,
  scanInterval: SCAN_MS,
};

/** Refuses what is not a client that can be duplicated. */
export function checkClient(client: unknown): void {
  kindOf(client);
}

/** Makes a client of our own of the caller's. */
export function ownClient(client: unknown): OwnClient {
  switch (kindOf(client)) {
    case "ioredis":
      return new IoClient((client as IoRedis).duplicate(IO_OPTIONS), false);
    case "ioredis cluster":
      return new IoClient((client as IoRedis).duplicate([], IO_CLUSTER_OPTIONS), true);
    case "node-redis cluster":
      return new NodeClient((client as NodeRedis).duplicate(NODE_CLUSTER_OPTIONS), "cluster");
    case "node-redis sentinel":
      return new NodeClient((client as NodeRedis).duplicate(NODE_SENTINEL_OPTIONS), "sentinel");
    default:
      return new NodeClient((client as NodeRedis).duplicate(NODE_OPTIONS), "single");
  }
}

type Kind =
  | "ioredis"
  | "ioredis cluster"
  | "node-redis"
  | "node-redis cluster"
  | "node-redis sentinel";

function kindOf(client: unknown): Kind {
  const given = (client ?? {}) as Record<string, unknown>;
  const has = (...names: string[]) => names.every((name) => typeof given[name] === "function");
  const isIo = has("call", "evalsha");
  if (isIo && !has("duplicate")) {
    throw refusal(
      "this client sends unanswered commands again, which counts calls twice, and it has no " +
        "`duplicate` to make another one of it that does not",
    );
  }
  if (isIo) return given["isCluster"] === true ? "ioredis cluster" : "ioredis";
  if (has("sendCommand", "connect", "duplicate")) {
    if (has("nodeClient")) return "node-redis cluster";
    if (has("acquire")) return "node-redis sentinel";
    if (has("evalSha")) return "node-redis";
  }
  throw refusal(
    "expected a client of ioredis, iovalkey or node-redis: `new Redis()`, `new Cluster()`, " +
      `createClient(), createCluster() or createSentinel(); got ${show(typeof client)}`,
  );
}

function refusal(reason: string): ValidationError {
  return new ValidationError("client", undefined, reason);
}

/** Calls wait together for one attempt to connect. */
abstract class Attempts {
  protected lastError: unknown;
  #attempt: Promise<void> | undefined;

  connected(): Promise<void> {
    this.#attempt ??= this.attempt().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  /** Waits until the client is ready, or its next attempt has failed. */
  protected abstract attempt(): Promise<void>;
}

class IoClient extends Attempts implements OwnClient {
  readonly isCluster: boolean;
  readonly #client: IoRedis;

  constructor(client: IoRedis, isCluster: boolean) {
    super();
    this.#client = client;
    this.isCluster = isCluster;
    for (const event of ["error", "node error"]) {
      client.on(event, (error) => {
        this.lastError = error;
      });
    }
  }

  get isReady(): boolean {
    return this.#client.status === "ready";
  }

  send([name = "", ...args]: readonly string[]): Promise<unknown> {
    return this.#client.call(name, ...args);
  }

  reconnect(): void {
    // `reconnectOnError` has done it, and answers of a cluster name the new node.
  }

  close(): void {
    this.#client.disconnect();
  }

  protected attempt(): Promise<void> {
    const client = this.#client;
    return new Promise((resolve, reject) => {
      const end = () => {
        client.off("ready", ready);
        client.off("close", closed);
      };
      const ready = () => {
        end();
        resolve();
      };
      const closed = () => {
        end();
        reject((this.lastError ?? new Error("Connection is closed.")) as Error);
      };
      client.on("ready", ready);
      client.on("close", closed);
      if (client.status === "wait" || client.status === "end") {
        client.connect().catch(() => undefined);
      }
    });
  }
}

class NodeClient extends Attempts implements OwnClient {
  readonly isCluster: boolean;
  readonly #kind: "single" | "cluster" | "sentinel";
  #client: NodeRedis;

  constructor(client: NodeRedis, kind: "single" | "cluster" | "sentinel") {
    super();
    this.#kind = kind;
    this.isCluster = kind === "cluster";
    this.#client = this.#listened(client);
  }

  get isReady(): boolean {
    return this.#kind === "single" ? this.#client.isReady === true : this.#client.isOpen;
  }

  send(args: readonly string[], key: string | undefined): Promise<unknown> {
    if (this.#kind === "cluster") return this.#client.sendCommand(key, false, args);
    if (this.#kind === "sentinel") return this.#client.sendCommand(false, args);
    return this.#client.sendCommand(args);
  }

  /** Takes another duplicate: this client does not leave a server that has become a replica. */
  reconnect(): void {
    if (this.#kind !== "single") return;
    const old = this.#client;
    this.#client = this.#listened(old.duplicate(NODE_OPTIONS));
    if (old.isOpen) old.destroy();
  }

  close(): void {
    if (this.#client.isOpen) this.#client.destroy();
  }

  /** Waits until the first error: the promise of connecting lasts as long as the client tries. */
  protected attempt(): Promise<void> {
    const client = this.#client;
    return new Promise((resolve, reject) => {
      const end = () => {
        client.off("ready", ready);
        client.off("error", failed);
      };
      const ready = () => {
        end();
        resolve();
      };
      const failed = (error: unknown) => {
        end();
        reject(error as Error);
      };
      client.on("ready", ready);
      client.on("error", failed);
      if (!client.isOpen) client.connect().then(ready, failed);
    });
  }

  #listened(client: NodeRedis): NodeRedis {
    return client.on("error", (error) => {
      this.lastError = error;
    });
  }
}

/** Makes the client of an address: by ioredis, or by node-redis where only that is installed. */
export async function addressClient(
  address: string,
  options: { readonly tls?: object | undefined; readonly timeoutMs: number },
): Promise<OwnClient> {
  const { tls, timeoutMs } = options;
  const io = await loaded<{ Redis: new (url: string, options: object) => IoRedis }>("ioredis");
  if (io !== undefined) {
    const more = tls === undefined ? {} : { tls };
    const own = {
      ...IO_OPTIONS,
      connectTimeout: timeoutMs,
      connectionName: "zae-limiter",
      ...more,
    };
    return new IoClient(new io.Redis(address, own), false);
  }
  const node = await loaded<{ createClient: (options: object) => NodeRedis }>("redis");
  if (node !== undefined) {
    const reconnectStrategy = (attempts: number) => IO_OPTIONS.retryStrategy(attempts + 1);
    const socket = { connectTimeout: timeoutMs, reconnectStrategy, ...tls };
    const own = { url: address, name: "zae-limiter", socket, ...NODE_OPTIONS };
    return new NodeClient(node.createClient(own), "single");
  }
  throw new InfrastructureError(
    "Neither the package ioredis nor redis is installed, and addresses of Redis and Valkey need " +
      "one: npm install ioredis. A client of yours works by Repository.over(redis(client))",
  );
}

/** Loads a package; `undefined` when it is not installed. */
async function loaded<Module>(name: string): Promise<Module | undefined> {
  try {
    const found = (await import(name)) as Module & { default?: Module };
    return found.default ?? found;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
