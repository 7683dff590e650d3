/**
 * One table, two languages: a namespace of its own for every test, with a client of each library.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { RunningEngine } from "@zae-limiter/test-engines/engine.ts";
import { type StreamRecord, streamRecords } from "@zae-limiter/test-support/aws/stream-records.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type Place, PythonClient, type Release } from "./library.ts";

const TIMEOUT_MS = 20_000;

/** Both libraries in one namespace. */
export interface Both {
  readonly python: PythonClient;
  readonly repo: Repository;
  readonly limiter: RateLimiter;
}

export class SharedTable {
  readonly #table = newName();
  readonly #endpoint: string;
  readonly #opened: { close(): Promise<void> }[] = [];
  readonly #release: Release;
  #items: DynamoItemStore | undefined;
  #root: Repository | undefined;
  #python: PythonClient | undefined;

  constructor({ endpoint }: RunningEngine, release: Release) {
    this.#endpoint = endpoint;
    this.#release = release;
    beforeAll(async () => {
      const options = { endpoint, timeoutMs: TIMEOUT_MS, maxShards: 32 };
      this.#root = await Repository.createTable(this.#table, {
        ...options,
        gsi2Projection: "ALL",
      });
      this.#items = new DynamoItemStore({ table: this.#table, endpoint, timeoutMs: TIMEOUT_MS });
      this.#python = new PythonClient(release);
    });
    afterEach(async () => {
      for (const opened of this.#opened.splice(0)) await opened.close();
    });
    afterAll(async () => {
      await this.#python?.close();
      await Promise.all([this.#root?.close(), this.#items?.close()]);
      await deleteTable({ table: this.#table, endpoint });
    });
  }

  /** The table, for commands of both libraries. */
  get place(): Place {
    return { table: this.#table, endpoint: this.#endpoint };
  }

  /** The stored items, without either library. */
  get items(): DynamoItemStore {
    if (this.#items === undefined) throw new Error("The table is not there yet");
    return this.#items;
  }

  /** A client of each library in a new namespace. Ours caches no limits by default. */
  async open(configCacheTtlSeconds = 0): Promise<Both> {
    const namespace = newName();
    await this.#root?.namespaces.register(namespace);
    const repo = await this.#connect(namespace, configCacheTtlSeconds);
    const python = this.#python as PythonClient;
    await python.open(this.#table, this.#endpoint, namespace);
    return { python, repo, limiter: new RateLimiter(repo) };
  }

  /** Another client of ours in the same namespace, which knows nothing yet. */
  async another({ repo }: Both): Promise<RateLimiter> {
    return new RateLimiter(await this.#connect(repo.namespaceName, 0));
  }

  /** Another client of the Python library, in a process of its own. It is closed after the test. */
  async anotherPython({ repo }: Both): Promise<PythonClient> {
    const python = new PythonClient(this.#release);
    this.#opened.push(python);
    await python.open(this.#table, this.#endpoint, repo.namespaceName);
    return python;
  }

  /** Runs a command of ours to its end; what it printed. */
  async command({ repo }: Both, ...args: string[]): Promise<string> {
    const query = `endpoint=${this.#endpoint}&region=us-east-1&namespace=${repo.namespaceName}`;
    const url = ["--url", `dynamodb://${this.#table}?${query}`];
    const credentials = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
    const { code, out, err } = await cli([...args, ...url], { env: credentials });
    // 5: `limits diff` has found a difference.
    expect([0, args.includes("diff") ? 5 : 0]).toContain(code);
    expect(err).toBe("");
    return out;
  }

  /** Reads the stream records of the buckets of a namespace, in the form that Lambda gets. */
  async bucketRecords({ repo }: Both): Promise<StreamRecord[]> {
    const records = await streamRecords(this.#table, this.#endpoint);
    const prefix = `${repo.namespaceId}/BUCKET#`;
    return records.filter(({ dynamodb }) => {
      const { S = "" } = (dynamodb?.Keys?.["PK"] ?? {}) as { S?: string };
      return S.startsWith(prefix);
    });
  }

  /** The shards of a bucket that exist. */
  async shards({ repo }: Both, entityId: string, resource: string): Promise<Item[]> {
    const keys = Array.from({ length: 64 }, (_, shard) =>
      bucketKey(repo.namespaceId, entityId, resource, shard),
    );
    const items = await this.items.getMany(keys, { consistent: true });
    return items.filter((item) => item !== undefined);
  }

  async #connect(namespace: string, configCacheTtlSeconds: number): Promise<Repository> {
    const options = { endpoint: this.#endpoint, timeoutMs: TIMEOUT_MS, configCacheTtlSeconds };
    const repo = await Repository.connect(this.#table, { ...options, namespace });
    this.#opened.push(repo);
    return repo;
  }
}

/** The sum of an attribute over items. */
export function sum(items: readonly Item[], attribute: string): number {
  return items.reduce((total, item) => total + Number(item[attribute] ?? 0), 0);
}
