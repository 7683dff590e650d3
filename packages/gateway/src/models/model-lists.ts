/**
 * The models that upstreams have, by their own lists, and the names that limits are stored for.
 * Both are read at the start and then in the background; a list is kept in the store, so that a
 * gateway knows it also when the upstream does not answer.
 */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { LimitRecords } from "@zae-limiter/limiter/records/config/limits.ts";
import type { Notes } from "@zae-limiter/limiter/records/notes.ts";
import { hashOf } from "../keys.ts";
import type { UpstreamSpec } from "../upstreams.ts";
import {
  canList,
  type ListedModel,
  MODELS_MAX,
  modelOf,
  requestModels,
} from "./model-list-request.ts";
import { beginningOf } from "./model-names.ts";
import { Refreshed } from "./refreshed.ts";

/** A list by names. */
export type ModelList = ReadonlyMap<string, ListedModel>;

export interface ModelListsOptions {
  readonly upstreams: readonly UpstreamSpec[];
  readonly notes: Pick<Notes, "get" | "set">;
  readonly limits: Pick<LimitRecords, "listResources" | "listEntityResources">;
  readonly timer: Timer;
  /** Gets a line for the operator when an upstream's list cannot be read, once until it can. */
  readonly tell: (line: string) => void;
}

const PERIOD_MS = 300_000;
/** Names that are not known make the lists be read again, at most so often. */
const MISSED_MS = 60_000;
/** How old the names of stored limits may be where a list of models is filtered by them. */
const STORED_MS = 10_000;
const TIMEOUT_MS = 10_000;
/** How long a gateway waits for lists that it has never seen before it takes calls. */
const START_MS = 3000;

export class ModelLists {
  readonly #options: ModelListsOptions;
  readonly #lists = new Map<UpstreamSpec, Refreshed<ModelList>>();
  readonly #stored: Refreshed<ReadonlySet<string>>;
  readonly #stopped = new AbortController();

  constructor(options: ModelListsOptions) {
    this.#options = options;
    const { timer } = options;
    const read = () => this.#readStored();
    this.#stored = new Refreshed({ read, timer, timeoutMs: TIMEOUT_MS });
  }

  /** Reads everything once; an upstream that is slow is waited for in the background. */
  async start(): Promise<void> {
    const { upstreams, timer } = this.#options;
    const listing = upstreams.filter(needsList).filter(canList);
    const first = listing.map((upstream) => this.#add(upstream));
    const done = new AbortController();
    const all = Promise.all([...first, this.#stored.refresh(0)]);
    await Promise.race([all, timer.sleep(START_MS, done.signal, true)]);
    done.abort();
    void this.#refreshForEver();
  }

  /** Returns the list of an upstream; `undefined` where it has none that could be read. */
  of(upstream: UpstreamSpec): ModelList | undefined {
    return this.#lists.get(upstream)?.value;
  }

  /** Names that limits or switches are stored for, as far as they could be read. */
  get stored(): ReadonlySet<string> {
    return this.#stored.value ?? NO_NAMES;
  }

  /** Returns those names, read within the last seconds; `undefined`: they could not be read. */
  async newlyStored(): Promise<ReadonlySet<string> | undefined> {
    await this.#stored.refresh(STORED_MS);
    return this.#stored.value;
  }

  /** Reads again in the background, because a name was not known. */
  missed(upstream: UpstreamSpec): void {
    void this.#lists.get(upstream)?.refresh(MISSED_MS);
    void this.#stored.refresh(MISSED_MS);
  }

  stop(): void {
    this.#stopped.abort();
    this.#stored.stop();
    for (const list of this.#lists.values()) list.stop();
  }

  /** Begins with the list of the store; resolves when there is a list, or none can be had. */
  async #add(upstream: UpstreamSpec): Promise<void> {
    const { notes, timer, tell } = this.#options;
    const name = noteName(upstream);
    const known = await notes.get(name).then(listIn, () => undefined);
    const last = { text: textOf(known), isFailing: false };
    const list = new Refreshed(
      {
        read: async (signal) => {
          const read = listOf(await requestModels(upstream, signal));
          last.isFailing = false;
          void this.#keep(name, read, last);
          return read;
        },
        timer,
        timeoutMs: TIMEOUT_MS,
        onFailure: ({ message }) => {
          if (last.isFailing) return;
          last.isFailing = true;
          tell(failureLine(upstream, message, list.value !== undefined));
        },
      },
      known,
    );
    this.#lists.set(upstream, list);
    const refreshed = list.refresh(0);
    if (known === undefined) await refreshed;
  }

  /** Writes a list to the store where it is new; without labels where it is too long. */
  async #keep(name: string, list: ModelList, last: { text: string }): Promise<void> {
    const text = textOf(list);
    if (text === last.text) return;
    const { notes } = this.#options;
    const models = JSON.parse(text) as JsonValue;
    const ids = [...list.keys()].map((id) => ({ id }));
    try {
      await notes.set(name, { models }).catch(() => notes.set(name, { models: ids }));
      last.text = text;
    } catch {
      // The gateway may have no right to write notes; it goes on with the list in memory.
    }
  }

  async #readStored(): Promise<ReadonlySet<string>> {
    const { limits } = this.#options;
    const both = await Promise.all([limits.listResources(), limits.listEntityResources()]);
    return new Set(both.flat().slice(0, MODELS_MAX));
  }

  async #refreshForEver(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#options.timer.sleep(PERIOD_MS, signal, true);
      const all = [this.#stored, ...this.#lists.values()];
      await Promise.all(all.map((each) => each.refresh(0)));
    }
  }
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** Returns whether the provider's list is needed: entries that are all names need none. */
function needsList({ models }: UpstreamSpec): boolean {
  return models.length === 0 || models.some((entry) => beginningOf(entry) !== undefined);
}

function noteName({ url, api }: UpstreamSpec): string {
  return `gateway-models/${hashOf(`${api} ${url.href}`)}`;
}

function listOf(models: readonly ListedModel[]): ModelList {
  return new Map(models.map((model) => [model.id, model]));
}

/** Reads a note; `undefined` where it is none. */
function listIn(note: JsonValue | undefined): ModelList | undefined {
  const models = (note as { models?: unknown } | undefined)?.models;
  if (!Array.isArray(models)) return undefined;
  return listOf(models.slice(0, MODELS_MAX).flatMap((entry: unknown) => modelOf(entry) ?? []));
}

function textOf(list: ModelList | undefined): string {
  return list === undefined ? "" : JSON.stringify([...list.values()]);
}

function failureLine({ url }: UpstreamSpec, reason: string, isKnown: boolean): string {
  const effect = isKnown
    ? "The last list stays."
    : "Until then, only names that limits are stored for are known.";
  return `The models of ${url.href} cannot be listed: ${reason}. ${effect}`;
}
