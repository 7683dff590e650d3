/**
 * The built command as a child process, on a SQLite file and on local DynamoDB. A child costs about
 * 150 ms, so only cases that are about the process are here; `test/unit/cli` has the others.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { builtSources } from "./build.ts";
import { NIGHTLY_ONLY } from "./effort.ts";
import { newName } from "./stores.ts";
import { describeUnless } from "./unless.ts";

/** The databases share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  /** Text that is piped in; nothing when absent. */
  readonly input?: string;
  /** The input stays open, and nothing comes. */
  readonly keepsAsking?: true;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The binary, built from the sources as they are. */
export class Binary {
  readonly #path: string;

  constructor(path: string = builtSources().binary) {
    this.#path = path;
  }

  start(args: readonly string[], options: RunOptions = {}): ChildProcess {
    const child = spawn(process.execPath, [this.#path, ...args], {
      env: { PATH: process.env.PATH ?? "", ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      stdio: ["pipe", "pipe", "pipe"],
    });
    // A command that does not read its input may be gone before it comes.
    child.stdin?.on("error", () => undefined);
    if (options.keepsAsking !== true) child.stdin?.end(options.input ?? "");
    return child;
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return collect(this.start(args, options));
  }
}

/** Collects the output of a process until its end. */
export async function collect(child: ChildProcess): Promise<Ran> {
  const said = { out: "", err: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    said.out += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said.err += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...said };
}

/** A store under test, with a namespace of its own for each test. */
export class CliStore {
  #binary: Binary | undefined;
  #url = "";
  #namespace = "";
  #opened: Repository | undefined;
  #openItems: (() => Promise<ItemStore>) | undefined;

  /** The address, for tests that name it themselves. */
  get url(): string {
    return this.#url;
  }

  get namespace(): string {
    return this.#namespace;
  }

  /** The namespace through the library. */
  get repository(): Repository {
    if (this.#opened === undefined) throw new Error("The store is not open yet");
    return this.#opened;
  }

  get binary(): Binary {
    if (this.#binary === undefined) throw new Error("The binary is not built yet");
    return this.#binary;
  }

  /** Runs a command; the last argument may be options of the process. */
  run(...words: readonly (string | RunOptions)[]): Promise<Ran> {
    const { args, options } = split(words);
    return this.binary.run(args, this.#situated(options));
  }

  start(...words: readonly (string | RunOptions)[]): ChildProcess {
    const { args, options } = split(words);
    return this.binary.start(args, this.#situated(options));
  }

  /** Returns what a command prints with `--json`; it must succeed. */
  async json<T = unknown>(...args: readonly string[]): Promise<T> {
    const { code, out, err } = await this.run(...args, "--json");
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${err}`);
    return JSON.parse(out) as T;
  }

  /** Stores items past all records, such as usage without an aggregator. */
  async put(items: readonly Item[]): Promise<void> {
    const store = await this.#openItems?.();
    await store?.writeMany({ puts: items });
    await store?.close();
  }

  enter(binary: Binary, url: string, openItems: () => Promise<ItemStore>): void {
    this.#binary = binary;
    this.#url = url;
    this.#openItems = openItems;
  }

  async renew(open: (namespace: string) => Promise<Repository>): Promise<void> {
    await this.#opened?.close();
    this.#namespace = newName();
    this.#opened = await open(this.#namespace);
  }

  async leave(): Promise<void> {
    await this.#opened?.close();
  }

  /** The store comes by the environment, so that commands need no options for it. */
  #situated(options: RunOptions): RunOptions {
    const env = { ZAEL_URL: this.#url, ZAEL_NAMESPACE: this.#namespace, ...options.env };
    return { ...options, env };
  }
}

/** One `describe` per store; a missing engine shows up as a skip with its reason. */
export function describeCliStores(title: string, suite: (store: CliStore) => void): void {
  describe(`${title} on sqlite`, () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
    const path = join(folder, "limits.db");
    const url = `sqlite:${path}`;
    const store = new CliStore();
    const openItems = async () => (await openSqlite({ path })).store;
    beforeAll(() => store.enter(new Binary(), url, openItems));
    beforeEach(() =>
      store.renew((namespace) => Repository.open(url, { namespace, timeoutMs: TIMEOUT_MS })),
    );
    afterAll(async () => {
      await store.leave();
      rmSync(folder, { recursive: true });
    });
    suite(store);
  });
  // The same cases again: what differs between stores is below the commands.
  describeUnless(NIGHTLY_ONLY)("at night", () => {
    describeEngines(title, ({ endpoint }) => {
      const table = newName();
      const connection = { endpoint, timeoutMs: TIMEOUT_MS };
      const store = new CliStore();
      let root: Repository;
      beforeAll(async () => {
        await createTable({ table, endpoint, stream: false });
        root = await Repository.createTable(table, connection);
        const url = `dynamodb://${table}?endpoint=${endpoint}`;
        store.enter(new Binary(), url, async () => new DynamoItemStore({ table, ...connection }));
      });
      beforeEach(() =>
        store.renew(async (namespace) => {
          await root.namespaces.register(namespace);
          return Repository.connect(table, { ...connection, namespace });
        }),
      );
      afterAll(async () => {
        await store.leave();
        await root.close();
        await deleteTable({ table, endpoint });
      });
      suite(store);
    });
  });
}

function split(words: readonly (string | RunOptions)[]): {
  args: readonly string[];
  options: RunOptions;
} {
  const args = words.filter((word) => typeof word === "string");
  const options = words.find((word): word is RunOptions => typeof word !== "string");
  return { args, options: options ?? {} };
}
