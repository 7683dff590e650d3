/**
 * Prices by name: the exact name of a model, or its beginning with `*` at the end. An entry may be
 * for one upstream alone. The most specific entry counts, whatever the order of the list.
 */

import { show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { checkResource } from "./names.ts";
import { Price, type PriceSpec } from "./price.ts";

/** The end of a name that matches all names with that beginning. */
const ANY_END = "*";

/**
 * A price with the models that it is for.
 *
 * @example
 * ```ts
 * import type { PriceEntry } from 'zae-limiter';
 * const entry: PriceEntry = { model: 'llama-*', upstream: 'vllm', price: { free: true } };
 * console.log(entry.model); // llama-*
 * ```
 */
export interface PriceEntry {
  /** The name of a model, or its beginning with `*` at the end. */
  readonly model: string;
  /** The upstream that the price is for; absent: all. */
  readonly upstream?: string;
  readonly price: PriceSpec;
}

/** A checked list, which finds the price of a model. */
export class PriceList {
  readonly #exact = new Map<string, Price>();
  readonly #beginnings: { readonly key: string; readonly price: Price }[] = [];

  constructor(entries: Iterable<PriceEntry>) {
    for (const { model, upstream, price } of entries) {
      const key = keyOf(checkPricedModel(model), upstream);
      const checked = Price.from(price);
      if (model.endsWith(ANY_END)) this.#beginnings.push({ key: key.slice(0, -1), price: checked });
      else this.#exact.set(key, checked);
    }
    this.#beginnings.sort((one, other) => other.key.length - one.key.length);
  }

  /** Returns the price of a model: of this upstream before that of all, exact before beginnings. */
  find(model: string, upstream?: string): Price | undefined {
    const keys = upstream === undefined ? [keyOf(model)] : [keyOf(model, upstream), keyOf(model)];
    for (const key of keys) {
      const exact = this.#exact.get(key);
      if (exact !== undefined) return exact;
    }
    for (const key of keys) {
      const found = this.#beginnings.find((each) => key.startsWith(each.key));
      if (found !== undefined) return found.price;
    }
    return undefined;
  }
}

/** Checks the name of a priced model; a `*` may be its end, or all of it. */
export function checkPricedModel(value: unknown): string {
  if (value === ANY_END) return ANY_END;
  if (typeof value !== "string") {
    throw new ValidationError("model", value, `expected the name of a model, got ${show(value)}`);
  }
  checkResource(value.endsWith(ANY_END) ? value.slice(0, -ANY_END.length) : value);
  return value;
}

/** Names have no line breaks; the line of all upstreams is empty. */
function keyOf(model: string, upstream = ""): string {
  return `${upstream}\n${model}`;
}
