/** Decides which upstream a call goes to, and for which resource its model counts. */

import { LRUCache } from "lru-cache";
import { type UpstreamSpec, upstreamFor } from "../upstreams.ts";
import type { ListedModel } from "./model-list-request.ts";
import { type ModelList, ModelLists, type ModelListsOptions } from "./model-lists.ts";
import { beginningOf, entryFor, modelNameProblem } from "./model-names.ts";
import { ModelsAnswer } from "./models-answer.ts";

/** The resource of all models that are not known. */
export const OTHER = "other";

export interface ResolvedModel {
  readonly resource: string;
  readonly upstream: UpstreamSpec;
  /** The most output tokens of one call, where the operator has said so. */
  readonly modelOutputMax?: number;
}

export interface ModelsOptions extends ModelListsOptions {
  /** How unknown names are treated: they share one resource, or are refused. */
  readonly unknownModels: "other" | "refuse";
}

/** Returns whether an entity may use a resource. */
export type IsAllowed = (resource: string) => Promise<boolean>;

interface KeptAnswer {
  readonly answer: ModelsAnswer;
  readonly untilMs: number;
}

/** How long the answer to an entity is kept, in milliseconds. */
const ANSWER_MS = 30_000;
const ANSWERS_MAX = 200;

export class Models {
  readonly #options: ModelsOptions;
  readonly #lists: ModelLists;
  /** Upstreams that take every name that no other upstream lists. */
  readonly #rest: readonly UpstreamSpec[];
  readonly #answers = new LRUCache<string, KeptAnswer>({ max: ANSWERS_MAX });

  private constructor(options: ModelsOptions) {
    this.#options = options;
    this.#lists = new ModelLists(options);
    this.#rest = options.upstreams.filter(({ models }) => models.length === 0);
  }

  /** Reads the lists that are needed; takes a few seconds at most. */
  static async start(options: ModelsOptions): Promise<Models> {
    const models = new Models(options);
    await models.#lists.start();
    return models;
  }

  stop(): void {
    this.#lists.stop();
  }

  /**
   * Returns where a model is served and what it counts for. A deployment in the path goes before
   * the name in the body. `undefined` as name means that the API has no models; a body that lacks
   * the name of its model has the name "".
   */
  resolve(
    named: string | undefined,
    deployment: string | undefined,
  ): ResolvedModel | "unknown" | "no upstream" {
    const name = deployment ?? named;
    const upstream = this.#upstreamFor(name ?? "");
    if (upstream === undefined) return "no upstream";
    const resource = name === undefined ? undefined : this.#resourceOf(upstream, name);
    if (resource !== undefined) {
      return resolved(resource, upstream, outputMax(upstream, name ?? "", resource));
    }
    if (name !== undefined && name !== "") this.#lists.missed(upstream);
    if (name !== undefined && this.#options.unknownModels === "refuse") return "unknown";
    // It may be another spelling of any model of the upstream.
    const most = Math.max(0, ...upstream.maxOutput.values());
    return resolved(OTHER, upstream, most === 0 ? undefined : most);
  }

  /** Returns the models that an entity may use; with `entityId`, the same for half a minute. */
  async list(isAllowed: IsAllowed, entityId?: string): Promise<ModelsAnswer> {
    const nowMs = this.#options.timer.nowMs();
    const kept = entityId === undefined ? undefined : this.#answers.get(entityId);
    if (kept !== undefined && kept.untilMs > nowMs) return kept.answer;
    const allowed = await this.#allowedBy(isAllowed);
    const listed = this.#listed();
    const isUsable = await Promise.all(listed.map(([, resource]) => allowed(resource)));
    const models = listed.filter((_, at) => isUsable[at]).map(([model]) => model);
    const answer = new ModelsAnswer(models, (id) => this.#unlisted(id, allowed));
    const untilMs = nowMs + ANSWER_MS;
    if (entityId !== undefined) this.#answers.set(entityId, { answer, untilMs });
    return answer;
  }

  /** Returns the upstream of a name; among those without `models`, the first that lists it. */
  #upstreamFor(name: string): UpstreamSpec | undefined {
    const chosen = upstreamFor(this.#options.upstreams, name);
    if (chosen === undefined || chosen.models.length > 0 || chosen.aliases.has(name)) {
      return chosen;
    }
    return this.#rest.find((upstream) => this.#lists.of(upstream)?.has(name)) ?? chosen;
  }

  /** Returns what a name counts for at an upstream; `undefined` where it is not known. */
  #resourceOf(upstream: UpstreamSpec, name: string): string | undefined {
    if (modelNameProblem(name) !== undefined) return undefined;
    const { models, aliases } = upstream;
    const alias = aliases.get(name);
    if (alias !== undefined) return alias;
    const list = this.#lists.of(upstream);
    if (models.length === 0) return (list ?? this.#lists.stored).has(name) ? name : undefined;
    const entry = entryFor(models, name);
    if (entry === undefined) return undefined;
    // A beginning matches names that a client invents, unless the operator vouches for all by `*`.
    const isVouched = entry === name || entry.endsWith("*") || list === undefined;
    return isVouched || list.has(name) || this.#lists.stored.has(name) ? name : undefined;
  }

  /** Returns all known models once each, with their resources. */
  #listed(): (readonly [ListedModel, string])[] {
    const listed = new Map<string, readonly [ListedModel, string]>();
    for (const upstream of this.#options.upstreams) {
      const list = this.#lists.of(upstream);
      for (const name of namesOf(upstream, list)) {
        if (listed.has(name) || this.#upstreamFor(name) !== upstream) continue;
        const resource = this.#resourceOf(upstream, name);
        if (resource !== undefined) listed.set(name, [list?.get(name) ?? { id: name }, resource]);
      }
    }
    return [...listed.values()];
  }

  /** Returns a model that no list has to have: one of a beginning, or one with limits. */
  async #unlisted(id: string, allowed: IsAllowed): Promise<ListedModel | undefined> {
    const upstream = this.#upstreamFor(id);
    if (upstream === undefined || this.#lists.of(upstream) !== undefined) return undefined;
    const resource = this.#resourceOf(upstream, id);
    return resource !== undefined && (await allowed(resource)) ? { id } : undefined;
  }

  /** Asks once for all resources that no level names: their answer is the same. */
  async #allowedBy(isAllowed: IsAllowed): Promise<IsAllowed> {
    const stored = await this.#lists.newlyStored();
    const answers = new Map<string, Promise<boolean>>();
    return (resource) => {
      const name = stored === undefined || stored.has(resource) ? resource : "";
      const answer = answers.get(name) ?? isAllowed(resource);
      answers.set(name, answer);
      return answer;
    };
  }
}

function namesOf({ models, aliases }: UpstreamSpec, list: ModelList | undefined): Set<string> {
  const names = new Set(models.filter((entry) => beginningOf(entry) === undefined));
  for (const name of list?.keys() ?? []) names.add(name);
  // The resource itself may be a word of the operator that the upstream does not know.
  for (const [name, resource] of aliases) if (name !== resource) names.add(name);
  return names;
}

function outputMax(
  { maxOutput }: UpstreamSpec,
  name: string,
  resource: string,
): number | undefined {
  const entries = [...maxOutput.keys()];
  const exact = maxOutput.get(name) ?? maxOutput.get(resource);
  return exact ?? maxOutput.get(entryFor(entries, name) ?? "");
}

function resolved(
  resource: string,
  upstream: UpstreamSpec,
  modelOutputMax: number | undefined,
): ResolvedModel {
  return modelOutputMax === undefined
    ? { resource, upstream }
    : { resource, upstream, modelOutputMax };
}
