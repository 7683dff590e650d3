/**
 * List prices of models that the package ships: `schema/prices.json`, which `npm run prices` makes
 * from two public tables. Nothing is fetched: a model that is newer than this release has no price
 * until it is given one.
 */

import { readFileSync } from "node:fs";
import { shippedFile } from "../base/shipped-file.ts";
import { Price, type PriceSpec } from "../domain/price.ts";

/** The file, next to `dist`. */
const FILE = "../schema/prices.json";

/** Providers whose models have names of their own, in the order of the search for a name. */
const BRANDS = [
  "openai",
  "anthropic",
  "google",
  "x-ai",
  "deepseek",
  "mistral",
  "cohere",
  "moonshotai",
  "zai",
  "minimax",
  "perplexity",
  "voyageai",
];

/** Ends of host names, and the provider whose prices hold there. */
const HOSTS: readonly (readonly [end: string, provider: string])[] = [
  ["openai.com", "openai"],
  ["anthropic.com", "anthropic"],
  ["openai.azure.com", "azure"],
  ["generativelanguage.googleapis.com", "google"],
  ["x.ai", "x-ai"],
  ["deepseek.com", "deepseek"],
  ["mistral.ai", "mistral"],
  ["cohere.com", "cohere"],
  ["cohere.ai", "cohere"],
  ["moonshot.ai", "moonshotai"],
  ["z.ai", "zai"],
  ["minimax.io", "minimax"],
  ["perplexity.ai", "perplexity"],
  ["voyageai.com", "voyageai"],
  ["groq.com", "groq"],
  ["together.xyz", "together"],
  ["fireworks.ai", "fireworks"],
  ["cerebras.ai", "cerebras"],
  ["openrouter.ai", "openrouter"],
];

/** Names of providers in the AI SDK that differ from those of the table. */
const SDK_NAMES: ReadonlyMap<string, string> = new Map([
  ["xai", "x-ai"],
  ["azure-openai", "azure"],
  ["togetherai", "together"],
]);

/** The date of a version at the end of a name, or `-latest`. */
const VERSION = /(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4})|-latest)$/;

/** The source of shipped prices. */
export interface PriceSource {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly sha256: string;
}

interface PriceFile {
  /** The day on which the table was made. */
  readonly date: string;
  readonly sources: readonly PriceSource[];
  readonly providers: Readonly<Record<string, Readonly<Record<string, PriceSpec>>>>;
}

/** The shipped table, read once. */
class ShippedPrices {
  readonly date: string;
  readonly sources: readonly PriceSource[];
  readonly #providers: ReadonlyMap<string, ReadonlyMap<string, PriceSpec>>;
  readonly #checked = new Map<PriceSpec, Price>();

  constructor({ date, sources, providers }: PriceFile) {
    this.date = date;
    this.sources = sources;
    this.#providers = new Map(
      Object.entries(providers).map(([name, models]) => [name, new Map(Object.entries(models))]),
    );
  }

  /**
   * Returns the price of a model: of one provider, else of the first whose brand it is. A name with
   * the date of a version has the price of the name without it.
   */
  find(model: string, provider?: string): Price | undefined {
    const spec = provider === undefined ? this.#findAnywhere(model) : this.#findAt(provider, model);
    if (spec === undefined) return undefined;
    let price = this.#checked.get(spec);
    if (price === undefined) {
      price = Price.from(spec);
      this.#checked.set(spec, price);
    }
    return price;
  }

  hasProvider(name: string): boolean {
    return this.#providers.has(name);
  }

  /** Returns all models of the table, with their providers. */
  *entries(): Generator<{ readonly provider: string; readonly model: string; price: PriceSpec }> {
    for (const [provider, models] of this.#providers) {
      for (const [model, price] of models) yield { provider, model, price };
    }
  }

  #findAnywhere(model: string): PriceSpec | undefined {
    // `openai/gpt-5` is how routers name a model of a provider.
    const slash = model.indexOf("/");
    const named =
      slash < 0 ? undefined : this.#findAt(model.slice(0, slash), model.slice(slash + 1));
    if (named !== undefined) return named;
    for (const provider of BRANDS) {
      const spec = this.#findAt(provider, model);
      if (spec !== undefined) return spec;
    }
    return undefined;
  }

  #findAt(provider: string, model: string): PriceSpec | undefined {
    const models = this.#providers.get(provider);
    return models?.get(model) ?? models?.get(model.replace(VERSION, ""));
  }
}

/** Returns the provider that the AI SDK calls `openai.chat`; `undefined` for one without prices. */
export function providerOfSdk(provider: string): string | undefined {
  const [name = ""] = provider.split(".");
  const known = SDK_NAMES.get(name) ?? name;
  return shippedPrices().hasProvider(known) ? known : undefined;
}

let shipped: ShippedPrices | undefined;

/** Returns the shipped table; reads its file the first time. */
export function shippedPrices(): ShippedPrices {
  if (shipped !== undefined) return shipped;
  const url = shippedFile(FILE, import.meta.url);
  if (url === undefined) throw new Error("zae-limiter was installed without its schema folder");
  shipped = new ShippedPrices(JSON.parse(readFileSync(url, "utf8")) as PriceFile);
  return shipped;
}

/** Returns the provider behind a host name; `undefined` for a host that no table names. */
export function providerOfHost(host: string): string | undefined {
  const name = host.toLowerCase();
  const found = HOSTS.filter(([end]) => name === end || name.endsWith(`.${end}`));
  // The longest end is the closest: `openai.azure.com` is not OpenAI.
  return found.sort(([one], [other]) => other.length - one.length)[0]?.[1];
}
