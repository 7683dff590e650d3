/** The providers behind a gateway: their addresses, keys and models. */

import {
  checkFields,
  checkInteger,
  isPlainObject,
  show,
  TOKENS_MAX,
} from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { PriceSpec } from "@zae-limiter/limiter/domain/price.ts";
import { type PriceEntry, PriceList } from "@zae-limiter/limiter/domain/price-list.ts";
import { beginningOf, modelNameProblem, routedLength } from "./models/model-names.ts";

export interface UpstreamSpec {
  /** The base URL of the API, with its version: `https://api.openai.com/v1`. */
  readonly url: URL;
  /** How the key is sent. */
  readonly api: "openai" | "anthropic" | "azure";
  /** `undefined`: the client's own key is forwarded, or none where the upstream is keyless. */
  readonly key: string | undefined;
  /** The upstream needs no key, and gets none. */
  readonly isKeyless: boolean;
  /** Names of its models, and beginnings of names; none: its own list says which it has. */
  readonly models: readonly string[];
  /** Resources by the names that count for them. A resource is a name of itself. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Own prices, by names and beginnings of names of models. */
  readonly prices: readonly PriceEntry[];
  /** The most output tokens of one call, by names and beginnings of names of models. */
  readonly maxOutput: ReadonlyMap<string, number>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** One mistake in the description of an upstream. */
export interface UpstreamProblem {
  /** The fields and positions that lead to it; empty: the upstream itself. */
  readonly path: readonly (string | number)[];
  readonly error: ValidationError;
}

const FIELDS = ["url", "models", "api", "key_env", "key", "aliases", "max_output", "prices"];
const DEFAULT_KEYS = {
  openai: "OPENAI_API_KEY",
  anthropic: "ANTHROPIC_API_KEY",
  azure: "AZURE_OPENAI_API_KEY",
} as const;
/** Matches every model, as an entry of `models` or of `max_output`. */
const EVERY_MODEL = "*";

/** Reads one upstream; `isOpen` forwards the client's own key. */
export function checkUpstream(given: unknown, env: Environment, isOpen: boolean): UpstreamSpec {
  const read = readUpstream(given, env, isOpen);
  if ("spec" in read) return read.spec;
  throw read.problems[0]?.error;
}

/** Reads one upstream, or returns everything that is wrong with it. */
export function readUpstream(
  given: unknown,
  env: Environment,
  isOpen: boolean,
): { spec: UpstreamSpec } | { problems: readonly UpstreamProblem[] } {
  const problems: UpstreamProblem[] = [];
  const attempt: Attempt = (path, check) => {
    try {
      return check(["upstream", ...path].join("."));
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      problems.push({ path, error });
      return undefined;
    }
  };
  if (!isPlainObject(given)) attempt([], (field) => checkFields(field, given, FIELDS));
  if (!isPlainObject(given)) return { problems };
  for (const name of Object.keys(given)) {
    attempt([name], () => checkFields("upstream", { [name]: given[name] }, FIELDS));
  }
  const url = attempt(["url"], (field) => checkUrl(field, given["url"]));
  const api = attempt(["api"], (field) => checkApi(field, given["api"], url));
  const models = readModels(given["models"], attempt);
  const aliases = readAliases(given["aliases"], attempt);
  const maxOutput = readMaxOutput(given["max_output"], attempt);
  const prices = readPrices(given["prices"], attempt);
  const key = url && api && readKey(given, { url, api, env, isOpen }, attempt);
  if (url === undefined || api === undefined || key === undefined || problems.length > 0) {
    return { problems };
  }
  const own = prices.map((entry) => ({ ...entry, upstream: url.host }));
  return { spec: { url, api, ...key, models, aliases, maxOutput, prices: own } };
}

/** Runs a check of what is at a path, and notes what it throws. */
type Attempt = <T>(
  path: readonly (string | number)[],
  check: (field: string) => T,
) => T | undefined;

function checkUrl(field: string, address: unknown): URL {
  const url = typeof address === "string" && URL.canParse(address) ? new URL(address) : undefined;
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (url !== undefined && isWeb && url.username === "" && url.search === "") return url;
  const reason = `expected a URL like https://api.openai.com/v1, got ${show(address)}`;
  throw new ValidationError(field, address, reason);
}

function checkApi(field: string, named: unknown, url: URL | undefined): UpstreamSpec["api"] {
  const api = named ?? apiOf(url?.hostname ?? "");
  if (api === "openai" || api === "anthropic" || api === "azure") return api;
  const reason = `expected "openai", "anthropic" or "azure", got ${show(api)}`;
  throw new ValidationError(field, api, reason);
}

function apiOf(hostname: string): UpstreamSpec["api"] {
  if (hostname.includes("anthropic")) return "anthropic";
  return hostname.endsWith(".azure.com") ? "azure" : "openai";
}

function readModels(given: unknown, attempt: Attempt): readonly string[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given)) {
    const reason = `expected a list of names of models, and of beginnings like "gpt-", got ${show(given)}`;
    attempt(["models"], (field) => refuse(field, given, reason));
    return [];
  }
  given.forEach((entry: unknown, at) => {
    attempt(["models", at], (field) => checkEntry(field, entry));
  });
  return given as string[];
}

/** Reads `{ resource: [names] }`, with the resources as names of themselves. */
function readAliases(given: unknown, attempt: Attempt): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  if (given === undefined || given === null) return aliases;
  if (!isPlainObject(given)) {
    const reason = `expected { resource: [names of models] }, got ${show(given)}`;
    attempt(["aliases"], (field) => refuse(field, given, reason));
    return aliases;
  }
  for (const resource of Object.keys(given)) aliases.set(resource, resource);
  for (const [resource, names] of Object.entries(given)) {
    const path = ["aliases", resource];
    attempt(path, (field) => checkName(field, resource));
    if (!Array.isArray(names)) {
      const reason = `expected a list of names of models, got ${show(names)}`;
      attempt(path, (field) => refuse(field, names, reason));
      continue;
    }
    names.forEach((name: unknown, at) => {
      attempt([...path, at], (field) => {
        const checked = checkName(field, name);
        const before = aliases.get(checked);
        if (before !== undefined && before !== resource) {
          refuse(field, name, `${show(name)} counts for ${show(before)} already`);
        }
        aliases.set(checked, resource);
      });
    });
  }
  return aliases;
}

/** Reads one number for all models, or `{ model: number }`. */
function readMaxOutput(given: unknown, attempt: Attempt): ReadonlyMap<string, number> {
  const most = new Map<string, number>();
  if (given === undefined || given === null) return most;
  const isByModel = isPlainObject(given);
  for (const [entry, tokens] of Object.entries(isByModel ? given : { [EVERY_MODEL]: given })) {
    const path = isByModel ? ["max_output", entry] : ["max_output"];
    attempt(path, (field) => checkEntry(field, entry));
    const checked = attempt(path, (field) => checkInteger(field, tokens, 1, TOKENS_MAX));
    most.set(entry, checked ?? 0);
  }
  return most;
}

/** Reads `{ model: price }`; a name that ends in `*` is the beginning of names. */
function readPrices(given: unknown, attempt: Attempt): readonly PriceEntry[] {
  if (given === undefined || given === null) return [];
  if (!isPlainObject(given)) {
    const reason = `expected { model: { input, output } }, got ${show(given)}`;
    attempt(["prices"], (field) => refuse(field, given, reason));
    return [];
  }
  return Object.entries(given).map(([model, price]) => {
    const entry = { model, price: price as PriceSpec };
    attempt(["prices", model], () => new PriceList([entry]));
    return entry;
  });
}

/** Checks the name of a model, or the beginning of one. */
function checkEntry(field: string, entry: unknown): void {
  const beginning = typeof entry === "string" ? beginningOf(entry) : undefined;
  if (beginning === undefined) checkName(field, entry);
  // A name that goes on must be possible: `gpt-` is the beginning of `gpt-0`.
  else if (beginning !== "") checkName(field, entry, `${beginning}0`);
}

function checkName(field: string, given: unknown, name: unknown = given): string {
  if (typeof name !== "string") refuse(field, given, `expected a name, got ${show(given)}`);
  const problem = modelNameProblem(name);
  if (problem !== undefined) refuse(field, given, problem);
  return name;
}

function refuse(field: string, value: unknown, reason: string): never {
  throw new ValidationError(field, value, reason);
}

interface KeySource extends Pick<UpstreamSpec, "url" | "api"> {
  readonly env: Environment;
  readonly isOpen: boolean;
}

/** Returns the key of the environment; `undefined` where the problem is noted. */
function readKey(
  given: Readonly<Record<string, unknown>>,
  source: KeySource,
  attempt: Attempt,
): Pick<UpstreamSpec, "key" | "isKeyless"> | undefined {
  const { key, key_env: named } = given;
  if (key === undefined || key === null) {
    return attempt(["key_env"], (field) => checkKey(field, named, source));
  }
  return attempt(["key"], (field) => {
    // It may be a key, which no message shows.
    if (key !== "none") {
      const reason = "expected none; a key comes from the variable that key_env names";
      return refuse(field, undefined, reason);
    }
    if (named !== undefined) return refuse(field, key, "expected key: none or key_env, not both");
    return { key: undefined, isKeyless: true };
  });
}

function checkKey(
  field: string,
  named: unknown,
  { url, api, env, isOpen }: KeySource,
): Pick<UpstreamSpec, "key" | "isKeyless"> {
  const variable = named ?? DEFAULT_KEYS[api];
  if (typeof variable !== "string") {
    refuse(field, variable, `expected the name of a variable, got ${show(variable)}`);
  }
  if (isOpen) return { key: undefined, isKeyless: false };
  const key = env[variable];
  if (key !== undefined && key !== "") return { key, isKeyless: false };
  const reason =
    `the variable ${variable} has no key for ${url.origin}; set it, or use --open where ` +
    "clients have keys of their own, or --keyless (key: none in a file) where none is needed";
  throw new ValidationError(field, variable, reason);
}

/** Returns the upstream whose longest beginning matches; one without models takes the rest. */
export function upstreamFor<T extends Pick<UpstreamSpec, "models" | "aliases">>(
  upstreams: readonly T[],
  model: string,
): T | undefined {
  let best: T | undefined;
  let bestLength = -1;
  for (const upstream of upstreams) {
    const length = lengthFor(upstream, model);
    if (length <= bestLength) continue;
    best = upstream;
    bestLength = length;
  }
  return best;
}

function lengthFor({ models, aliases }: Pick<UpstreamSpec, "models" | "aliases">, model: string) {
  if (aliases.has(model)) return model.length;
  return models.length === 0 ? 0 : routedLength(models, model);
}
