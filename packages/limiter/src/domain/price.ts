/**
 * The price of a model: dollars for a million tokens of each part, as decimal text. A number could
 * not hold `0.0125` exactly; a text with six decimals is a whole number of pico-dollars a token.
 *
 * A part without a price of its own costs what the part it belongs to costs: cached input what
 * input costs, reasoning what output costs.
 */

import { affordable, type CostItem, costMicro, FACTOR_ONE, PICO_PER_MICRO } from "../core/cost.ts";
import { CURRENCIES, type Currency, currencyOf } from "../core/micro-dollars.ts";
import { checkChoice, checkFields, show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

/** Parts that are priced, each with the part whose price it has otherwise. */
const PARTS = {
  input: undefined,
  cachedInput: "input",
  cacheWrite: "input",
  cacheWrite1h: "cacheWrite",
  audioInput: "input",
  imageInput: "input",
  output: undefined,
  reasoning: "output",
  audioOutput: "output",
  imageOutput: "output",
} as const;

/** The parts that a price may state for tokens. */
export const PRICED_PARTS = Object.keys(PARTS) as readonly PricedPart[];
const TIERS = ["flex", "priority", "batch"] as const;
const RATE_FIELDS = [...PRICED_PARTS, "perRequest", "longContext"];
const FIELDS = [...RATE_FIELDS, "tiers", "discount", "free", "currency"];

/** Dollars: up to six digits, and up to six decimals. */
const DOLLARS = /^[0-9]{1,6}(?:\.[0-9]{1,6})?$/;
const DECIMALS = 6;
const CONTEXT_MAX = 1_000_000_000;

/** A part of a call that has a price of its own. */
export type PricedPart = keyof typeof PARTS;

/** Tiers of service other than the standard one, as answers name them. */
export type ServiceTier = (typeof TIERS)[number];

/** Dollars for a million tokens of each part, as decimal text. */
export type PartPrices = { readonly [Part in PricedPart]?: string } & {
  /** Dollars for one request, whatever its tokens. */
  readonly perRequest?: string;
};

/** Prices with those of long prompts, which hold for the whole call. */
export type TierPrices = PartPrices & {
  /** Prices of calls whose input has more tokens than `above`. */
  readonly longContext?: readonly (PartPrices & { readonly above: number })[];
};

/**
 * The price of a model.
 *
 * @example
 * ```ts
 * import type { PriceSpec } from 'zae-limiter';
 * const price: PriceSpec = {
 *   input: '1.25', cachedInput: '0.125', output: '10',
 *   tiers: { flex: { input: '0.625', output: '5' } },
 * };
 * console.log(price.output); // 10
 * ```
 */
export type PriceSpec = TierPrices & {
  /** Prices of other tiers of service, where the answer names one. */
  readonly tiers?: { readonly [Tier in ServiceTier]?: TierPrices };
  /** A factor for all prices: `"0.9"` is ten per cent off. */
  readonly discount?: string;
  /** The model costs nothing, such as one of your own. */
  readonly free?: boolean;
  /** The currency of the amounts; dollars when absent. Limits in others do not know the price. */
  readonly currency?: Currency;
};

/** Tokens of a call by part; no token is in two parts. Absent: 0. */
export type PricedTokens = { readonly [Part in PricedPart]?: number };

/** Facts that the price of a call depends on besides its tokens. */
export interface PriceContext {
  /** The tier of service that the answer names; `undefined`: the standard one. */
  readonly tier?: string | undefined;
}

interface Rates {
  readonly parts: ReadonlyMap<PricedPart | "perRequest", number>;
  /** Sorted: the largest bound first. */
  readonly longContext: readonly { readonly above: number; readonly parts: Rates["parts"] }[];
}

/** A checked price, which computes costs. */
export class Price {
  /** The price as it was given. */
  readonly spec: PriceSpec;
  readonly #rates: Rates;
  readonly #tiers: ReadonlyMap<string, Rates>;
  readonly #factor: number;

  private constructor(spec: PriceSpec) {
    checkFields("price", spec, FIELDS);
    checkChoice("price.currency", spec.currency ?? "usd", CURRENCIES);
    this.spec = spec;
    this.#rates = ratesOf("price", spec);
    const { tiers = {} } = spec;
    checkFields("price.tiers", tiers, TIERS);
    this.#tiers = new Map(
      Object.entries(tiers).map(([name, tier]) => [name, tierRates(`price.tiers.${name}`, tier)]),
    );
    this.#factor = factorOf(spec.discount);
    checkFree(spec, this.#rates);
  }

  /** Checks a price; throws a `ValidationError` that says what was expected. */
  static from(spec: PriceSpec): Price {
    return new Price(spec);
  }

  /** Whether the model costs nothing. */
  get isFree(): boolean {
    return this.spec.free === true;
  }

  /** Whether a limit in money of that name can be counted: there are no exchange rates. */
  counts(limitName: string): boolean {
    return this.isFree || currencyOf(limitName) === (this.spec.currency ?? "usd");
  }

  /** Whether output has a price; a model of embeddings has none. */
  get hasOutput(): boolean {
    return this.isFree || this.#rates.parts.has("output");
  }

  /** Returns what a call costs, in micro-dollars, rounded up once. */
  cost(tokens: PricedTokens, context: PriceContext = {}): number {
    if (this.isFree) return 0;
    const input = inputOf(tokens);
    const items: CostItem[] = [{ amount: 1, pico: this.#pico("perRequest", input, context) }];
    for (const part of PRICED_PARTS) {
      const amount = tokens[part] ?? 0;
      if (amount > 0) items.push({ amount, pico: this.#pico(part, input, context) });
    }
    return costMicro(items, this.#factor);
  }

  /** Returns the most output tokens that money pays for together with the input of a call. */
  outputFor(micro: number, tokens: PricedTokens): number {
    if (this.isFree) return Number.POSITIVE_INFINITY;
    const left = micro - this.cost({ ...tokens, output: 0, reasoning: 0 });
    const input = inputOf(tokens);
    const dearest = Math.max(this.#pico("output", input, {}), this.#pico("reasoning", input, {}));
    return affordable(left, dearest, this.#factor);
  }

  /** Returns pico-dollars for one token of a part, in a call with this number of input tokens. */
  #pico(part: PricedPart | "perRequest", input: number, { tier = "" }: PriceContext): number {
    const standard = picoIn(this.#rates, part, input);
    const rates = this.#tiers.get(tier);
    if (rates === undefined) return standard?.pico ?? 0;
    const own = picoIn(rates, part, input);
    if (own === undefined) return standard?.pico ?? 0;
    // A tier that states no price of long prompts is not cheaper for them than the standard one.
    const isShort = standard?.isLong === true && !own.isLong;
    return isShort ? Math.max(own.pico, standard.pico) : own.pico;
  }
}

/** Returns dollars as decimal text in whole pico-dollars; throws for anything else. */
function picoOf(field: string, value: unknown): number {
  if (typeof value !== "string" || !DOLLARS.test(value)) {
    const expected = 'dollars as text with at most six decimals, such as "1.25"';
    throw new ValidationError(field, value, `expected ${expected}, got ${show(value)}`);
  }
  return millionthsOf(value);
}

function millionthsOf(text: string): number {
  const [whole = "", decimals = ""] = text.split(".");
  return Number(whole) * PICO_PER_MICRO + Number(decimals.padEnd(DECIMALS, "0"));
}

function tierRates(field: string, tier: unknown): Rates {
  checkFields(field, tier, RATE_FIELDS);
  return ratesOf(field, tier as TierPrices);
}

function ratesOf(field: string, prices: TierPrices): Rates {
  const { longContext = [] } = prices;
  if (!Array.isArray(longContext)) {
    const reason = `expected an array of { above, … }, got ${show(longContext)}`;
    throw new ValidationError(`${field}.longContext`, longContext, reason);
  }
  const long = longContext.map((given: unknown, at) => {
    const place = `${field}.longContext[${at}]`;
    checkFields(place, given, [...PRICED_PARTS, "perRequest", "above"]);
    const { above, ...parts } = given as PartPrices & { above: unknown };
    if (Number.isInteger(above) && Number(above) > 0 && Number(above) <= CONTEXT_MAX) {
      return { above: Number(above), parts: partsOf(place, parts) };
    }
    throw new ValidationError(`${place}.above`, above, `expected tokens, got ${show(above)}`);
  });
  return {
    parts: partsOf(field, prices),
    longContext: long.sort((left, right) => right.above - left.above),
  };
}

function partsOf(field: string, prices: PartPrices): Rates["parts"] {
  const parts = new Map<PricedPart | "perRequest", number>();
  for (const part of [...PRICED_PARTS, "perRequest"] as const) {
    const value = prices[part];
    if (value !== undefined) parts.set(part, picoOf(`${field}.${part}`, value));
  }
  // A request has a price of its own; tokens are priced by the million.
  const perRequest = parts.get("perRequest");
  if (perRequest !== undefined) parts.set("perRequest", perRequest * PICO_PER_MICRO);
  return parts;
}

function factorOf(discount: unknown): number {
  if (discount === undefined) return FACTOR_ONE;
  const factor = picoOf("price.discount", discount);
  if (factor > 0 && factor <= FACTOR_ONE) return factor;
  const reason = `expected a factor above 0 and at most 1, got ${show(discount)}`;
  throw new ValidationError("price.discount", discount, reason);
}

/** Refuses a price that costs nothing without saying so: most likely it is not known. */
function checkFree(spec: PriceSpec, { parts }: Rates): void {
  const isStated = parts.has("input") || parts.has("perRequest");
  if (spec.free !== undefined && typeof spec.free !== "boolean") {
    throw new ValidationError("price.free", spec.free, `expected true, got ${show(spec.free)}`);
  }
  if (spec.free === true) {
    if (parts.size === 0) return;
    throw new ValidationError("price", spec, "expected free: true or prices, got both");
  }
  if (!isStated) {
    const reason = "expected at least a price for input, or perRequest, or free: true";
    throw new ValidationError("price", spec, reason);
  }
  if ([...parts.values()].every((pico) => pico === 0)) {
    const reason = "all prices are 0; write free: true for a model that costs nothing";
    throw new ValidationError("price", spec, reason);
  }
}

/** Returns the price of a part, or of the part it belongs to; long prompts have their own. */
function picoIn(
  { parts, longContext }: Rates,
  part: PricedPart | "perRequest",
  input: number,
): { readonly pico: number; readonly isLong: boolean } | undefined {
  const long = longContext.find(({ above }) => input > above)?.parts;
  for (let name: PricedPart | "perRequest" | undefined = part; name !== undefined; ) {
    const pico = long?.get(name) ?? parts.get(name);
    if (pico !== undefined) return { pico, isLong: long?.has(name) === true };
    name = name === "perRequest" ? undefined : PARTS[name];
  }
  return undefined;
}

function inputOf(tokens: PricedTokens): number {
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWrite1h = 0 } = tokens;
  const { audioInput = 0, imageInput = 0 } = tokens;
  return input + cachedInput + cacheWrite + cacheWrite1h + audioInput + imageInput;
}
