/** Opens the store of a command within its access, and closes it afterwards. */

import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  mkdtempSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { openAsItIs, type StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import {
  DEFAULT_URL,
  placeName,
  type StoreLocation,
  traitsOf,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import { type Access, CommandFailure } from "../frame/command.ts";
import type { StorePlace } from "./store-options.ts";

const DEFAULT_PATH = DEFAULT_URL.slice("sqlite:".length);

export class OpenStores {
  readonly #place: StorePlace;
  readonly #note: (text: string) => void;
  readonly #opened: { close(): Promise<void> }[] = [];
  #hasNoted = false;

  constructor(place: StorePlace, note: (text: string) => void) {
    this.#place = place;
    this.#note = note;
  }

  async repository(access: Access): Promise<Repository> {
    const { namespace } = this.#place;
    if (access !== "write") return (await this.store(access)).enter(namespace);
    return this.#prepared();
  }

  async store(access: Access): Promise<StoreAsItIs> {
    const { location, options } = this.#place;
    const missing = isMissing(location) || !traitsOf(location).isShared;
    if (access === "write" && missing) return asItIs(await this.#prepared());
    if (missing) return this.#nothing();
    this.#noteOther();
    const readable = access === "read" ? this.#readable(location) : location;
    return this.#keep(await openAsItIs(readable, options));
  }

  async close(): Promise<void> {
    // The newest first: a copy goes when the store on it is closed.
    for (const opened of this.#opened.splice(0).reverse()) await opened.close();
  }

  /** Returns the file itself, or a copy of one that may only be read. */
  #readable(location: StoreLocation): StoreLocation {
    const copy = copyToRead(location);
    if (copy === undefined) return location;
    this.#opened.push({ close: async () => copy.remove() });
    return copy.location;
  }

  async #prepared(): Promise<Repository> {
    const { location, namespace, options } = this.#place;
    // An address that was given names the store; the default depends on the folder.
    const isNew = fileOf(location)?.path === DEFAULT_PATH && isMissing(location);
    const opened = this.#keep(await Repository.open(urlOf(location), { ...options, namespace }));
    if (isNew) this.#note(`Created the store ${resolve(DEFAULT_PATH)}`);
    this.#noteOther();
    return opened;
  }

  /** Opens an empty store, which answers every question about a file that does not exist. */
  async #nothing(): Promise<StoreAsItIs> {
    const { location, namespace, options } = this.#place;
    if (isMissing(location)) this.#note(`Nothing is stored in ${placeName(location)} yet`);
    this.#noteOther();
    return asItIs(this.#keep(await Repository.open("memory:", { ...options, namespace })));
  }

  /** Names the store of this folder where a folder above has one, too. */
  #noteOther(): void {
    const path = fileOf(this.#place.location)?.path;
    const other = path === DEFAULT_PATH ? storeAbove(process.cwd()) : undefined;
    if (other === undefined || this.#hasNoted) return;
    this.#hasNoted = true;
    this.#note(`The store is ${resolve(DEFAULT_PATH)}; there is another: --url sqlite:${other}`);
  }

  #keep<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }
}

/** Returns the default store of the nearest folder above that has one. */
function storeAbove(folder: string): string | undefined {
  for (let at = dirname(folder); ; at = dirname(at)) {
    const path = join(at, DEFAULT_PATH);
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return path;
    if (at === dirname(at)) return undefined;
  }
}

/** Returns the store of a repository; its owner closes it. */
function asItIs(repository: Repository): StoreAsItIs {
  const { namespaces } = repository;
  return { namespaces, enter: (name) => repository.namespace(name), close: async () => {} };
}

/** Calls `work` with the store, or with a copy of a file that may only be read. */
export async function reading<Result>(
  location: StoreLocation,
  work: (readable: StoreLocation) => Promise<Result>,
): Promise<Result> {
  const copy = copyToRead(location);
  if (copy === undefined) return work(location);
  try {
    return await work(copy.location);
  } finally {
    copy.remove();
  }
}

/** Copies a file that may only be read; `undefined` where the store itself can be opened. */
function copyToRead(location: StoreLocation) {
  const file = fileOf(location);
  if (file === undefined || isWritable(file.path)) return undefined;
  const { path, remove } = readableCopy(file.path);
  return { location: { ...file, path }, remove };
}

/** Returns whether there is no file, or one in which nothing was ever stored. */
export function isMissing(location: StoreLocation): boolean {
  const path = fileOf(location)?.path;
  if (path === undefined) return false;
  const file = statSync(path, { throwIfNoEntry: false });
  return file === undefined || file.size === 0;
}

/** The end of the name of the log, which has the latest writes until SQLite moves them. */
const LOG = "-wal";
const ATTEMPTS_MAX = 5;

interface ReadableCopy {
  readonly path: string;
  remove(): void;
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Copies a SQLite file that this user may only read, with its log as of the same time. SQLite
 * writes files next to a file that it opens, so commands that only read work on a copy.
 */
export function readableCopy(path: string): ReadableCopy {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const copy = { path: join(folder, "limits.db"), remove: () => rmSync(folder, REMOVAL) };
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const before = stampOf(path);
      rmSync(copy.path + LOG, { force: true });
      copyFileSync(path, copy.path);
      if (statSync(path + LOG, OPTIONAL) !== undefined) copyFileSync(path + LOG, copy.path + LOG);
      if (stampOf(path) === before) return owned(copy);
    }
    throw new CommandFailure(
      `${path} is read-only here and changes all the time, so it cannot be copied. Try again later`,
    );
  } catch (error) {
    copy.remove();
    throw error;
  }
}

/** Makes a copy writable: it has the mode of its file, and reading usage writes counts. */
function owned(copy: ReadableCopy): ReadableCopy {
  for (const file of [copy.path, copy.path + LOG]) {
    if (statSync(file, OPTIONAL) !== undefined) chmodSync(file, 0o600);
  }
  return copy;
}

const REMOVAL = { recursive: true, force: true } as const;
const OPTIONAL = { throwIfNoEntry: false, bigint: true } as const;

/** Returns a text that differs once another process has written to either file. */
function stampOf(path: string): string {
  return [path, path + LOG]
    .map((file) => statSync(file, OPTIONAL))
    .map((stat) => (stat === undefined ? "none" : `${stat.size} ${stat.mtimeNs}`))
    .join(", ");
}
