/** Opens what a command works on, as far as its access goes, and closes it afterwards. */

import { statSync } from "node:fs";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { openAsItIs, type StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { fileOf } from "@zae-limiter/limiter/repository/stores/sqlite.ts";
import {
  placeName,
  type StoreLocation,
  traitsOf,
  urlOf,
} from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { Access } from "../frame/command.ts";
import { isWritable, readableCopy } from "./readable-copy.ts";
import type { StorePlace } from "./store-options.ts";

export class OpenStores {
  readonly #place: StorePlace;
  readonly #note: (text: string) => void;
  readonly #opened: { close(): Promise<void> }[] = [];

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
    const readable = access === "read" ? this.#readable(location) : location;
    return this.#keep(await openAsItIs(readable, options));
  }

  async close(): Promise<void> {
    // The newest first: a copy goes when the store on it is closed.
    for (const opened of this.#opened.splice(0).reverse()) await opened.close();
  }

  /** The file itself, or a copy of one that may only be read. */
  #readable(location: StoreLocation): StoreLocation {
    const copy = copyToRead(location);
    if (copy === undefined) return location;
    this.#opened.push({ close: async () => copy.remove() });
    return copy.location;
  }

  async #prepared(): Promise<Repository> {
    const { location, namespace, options } = this.#place;
    return this.#keep(await Repository.open(urlOf(location), { ...options, namespace }));
  }

  /** Opens an empty store, which answers every question about a file that does not exist. */
  async #nothing(): Promise<StoreAsItIs> {
    const { location, namespace, options } = this.#place;
    if (isMissing(location)) this.#note(`Nothing is stored in ${placeName(location)} yet`);
    return asItIs(this.#keep(await Repository.open("memory:", { ...options, namespace })));
  }

  #keep<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }
}

/** The store of a repository that is closed by its owner. */
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

/** No file, or one in which nothing was ever stored. */
export function isMissing(location: StoreLocation): boolean {
  const path = fileOf(location)?.path;
  if (path === undefined) return false;
  const file = statSync(path, { throwIfNoEntry: false });
  return file === undefined || file.size === 0;
}
