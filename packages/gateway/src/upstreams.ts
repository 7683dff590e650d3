/** The providers behind a gateway. */

import { checkFields, isPlainObject, show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";

export interface UpstreamSpec {
  readonly url: URL;
  /** Beginnings of the names of its models; none: all models. */
  readonly models: readonly string[];
  /** How the key is sent. */
  readonly api: "openai" | "anthropic";
  /** `undefined`: the client's own key is forwarded. */
  readonly key: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_KEYS = { openai: "OPENAI_API_KEY", anthropic: "ANTHROPIC_API_KEY" } as const;

/** Reads one upstream; `isOpen` forwards the client's own key. */
export function checkUpstream(given: unknown, env: Environment, isOpen: boolean): UpstreamSpec {
  const read = readUpstream(given, env, isOpen);
  if ("spec" in read) return read.spec;
  throw read.problems[0];
}

/** Reads one upstream, or returns everything that is wrong with it. */
export function readUpstream(
  given: unknown,
  env: Environment,
  isOpen: boolean,
): { spec: UpstreamSpec } | { problems: readonly ValidationError[] } {
  const problems: ValidationError[] = [];
  const attempt = <T>(check: () => T): T | undefined => {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      problems.push(error);
      return undefined;
    }
  };
  attempt(() => checkFields("upstream", given, ["url", "models", "api", "key_env"]));
  if (!isPlainObject(given)) return { problems };
  const url = attempt(() => checkUrl(given["url"]));
  const api = attempt(() => checkApi(given["api"], url));
  const models = attempt(() => checkModels(given["models"] ?? []));
  const key = api && url && attempt(() => checkKey(given["key_env"], api, url, env, isOpen));
  if (url === undefined || api === undefined || models === undefined || problems.length > 0) {
    return { problems };
  }
  return { spec: { url, models, api, key } };
}

function checkApi(named: unknown, url: URL | undefined): UpstreamSpec["api"] {
  const api = named ?? (url?.hostname.includes("anthropic") ? "anthropic" : "openai");
  if (api === "openai" || api === "anthropic") return api;
  const reason = `expected "openai" or "anthropic", got ${show(api)}`;
  throw new ValidationError("upstream.api", api, reason);
}

function checkModels(models: unknown): readonly string[] {
  const isList = Array.isArray(models);
  if (isList && models.every((model) => typeof model === "string" && model !== "")) return models;
  const reason = `expected a list of beginnings of model names, got ${show(models)}`;
  throw new ValidationError("upstream.models", models, reason);
}

/** Returns the key of the environment; `undefined` where clients send their own. */
function checkKey(
  named: unknown,
  api: UpstreamSpec["api"],
  url: URL,
  env: Environment,
  isOpen: boolean,
): string | undefined {
  const variable = named ?? DEFAULT_KEYS[api];
  if (typeof variable !== "string") {
    const reason = `expected the name of a variable, got ${show(variable)}`;
    throw new ValidationError("upstream.key_env", variable, reason);
  }
  if (isOpen) return undefined;
  const key = env[variable];
  if (key !== undefined && key !== "") return key;
  const reason = `the variable ${variable} has no key for ${url.origin}; set it, or use --open`;
  throw new ValidationError("upstream.key_env", variable, reason);
}

/** Returns the upstream whose longest beginning matches; one without models takes the rest. */
export function upstreamFor<T extends Pick<UpstreamSpec, "models">>(
  upstreams: readonly T[],
  model: string,
): T | undefined {
  let best: T | undefined;
  let bestLength = -1;
  for (const upstream of upstreams) {
    for (const beginning of upstream.models.length === 0 ? [""] : upstream.models) {
      if (beginning.length <= bestLength || !model.startsWith(beginning)) continue;
      best = upstream;
      bestLength = beginning.length;
    }
  }
  return best;
}

function checkUrl(address: unknown): URL {
  const url = typeof address === "string" && URL.canParse(address) ? new URL(address) : undefined;
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (url !== undefined && isWeb && url.username === "" && url.search === "") return url;
  const reason = `expected a URL like https://api.openai.com/v1, got ${show(address)}`;
  throw new ValidationError("upstream.url", address, reason);
}
