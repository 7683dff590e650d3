/** The providers behind a gateway: one of the command line, or several of a file. */

import { parseDocument } from "yaml";
import { checkFields, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors.ts";

/** A provider. */
export interface UpstreamSpec {
  readonly url: URL;
  /** Beginnings of the names of its models; none: all models. */
  readonly models: readonly string[];
  /** How the key is sent. */
  readonly api: "openai" | "anthropic";
  /** `undefined`: the client's own key is forwarded. */
  readonly key: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_KEYS = { openai: "OPENAI_API_KEY", anthropic: "ANTHROPIC_API_KEY" } as const;

/** Reads one upstream; `isOpen` forwards the client's own key. */
export function checkUpstream(given: unknown, env: Environment, isOpen: boolean): UpstreamSpec {
  checkFields("upstream", given, ["url", "models", "api", "key_env"]);
  const { url: address, models = [], api: named, key_env } = given as Record<string, unknown>;
  const url = checkUrl(address);
  const api = named ?? (url.hostname.includes("anthropic") ? "anthropic" : "openai");
  if (api !== "openai" && api !== "anthropic") {
    const reason = `expected "openai" or "anthropic", got ${show(api)}`;
    throw new ValidationError("upstream.api", api, reason);
  }
  if (!Array.isArray(models) || models.some((model) => typeof model !== "string" || model === "")) {
    const reason = `expected a list of beginnings of model names, got ${show(models)}`;
    throw new ValidationError("upstream.models", models, reason);
  }
  const variable = key_env ?? DEFAULT_KEYS[api];
  if (typeof variable !== "string") {
    const reason = `expected the name of a variable, got ${show(variable)}`;
    throw new ValidationError("upstream.key_env", variable, reason);
  }
  if (isOpen) return { url, models, api, key: undefined };
  const key = env[variable];
  if (key !== undefined && key !== "") return { url, models, api, key };
  const reason = `the variable ${variable} has no key for ${url.origin}; set it, or use --open`;
  throw new ValidationError("upstream.key_env", variable, reason);
}

/** Reads a file of upstreams in YAML or JSON. */
export function parseUpstreams(text: string, env: Environment, isOpen: boolean): UpstreamSpec[] {
  const document = parseDocument(text, { stringKeys: true, prettyErrors: true });
  const [error] = document.errors;
  if (error !== undefined) throw new ValidationError("config", "", error.message);
  const data: unknown = document.toJS();
  checkFields("config", data, ["upstreams"]);
  const { upstreams } = data as { upstreams?: unknown };
  if (!Array.isArray(upstreams) || upstreams.length === 0) {
    const reason = `expected a list with at least one upstream, got ${show(upstreams)}`;
    throw new ValidationError("upstreams", upstreams, reason);
  }
  return upstreams.map((each) => checkUpstream(each, env, isOpen));
}

/** Returns the upstream whose longest beginning matches; one without models takes the rest. */
export function upstreamFor(
  upstreams: readonly UpstreamSpec[],
  model: string,
): UpstreamSpec | undefined {
  let best: UpstreamSpec | undefined;
  let bestLength = -1;
  for (const upstream of upstreams) {
    const matching = upstream.models.filter((beginning) => model.startsWith(beginning));
    const isRest = upstream.models.length === 0;
    const length = isRest ? 0 : Math.max(-1, ...matching.map((beginning) => beginning.length));
    if (length > bestLength) {
      best = upstream;
      bestLength = length;
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
