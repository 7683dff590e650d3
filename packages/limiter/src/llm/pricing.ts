/**
 * Prices of calls, for limits in money: those that the namespace stores, then those of the options,
 * then the list prices that are shipped. Stored prices are read when a call first meets a limit in
 * money, and then at most once a minute.
 */

import { warnOnce } from "../base/warn-once.ts";
import type { Price } from "../domain/price.ts";
import { type PriceEntry, PriceList } from "../domain/price-list.ts";
import { providerOfHost, shippedPrices } from "./shipped-prices.ts";

const KEPT_MS = 60_000;
const UNPRICED_CODE = "ZAEL_MODEL_NOT_PRICED";

/** The model of a call, and where it is. */
export interface PricedModel {
  readonly model: string;
  /** The host of the upstream, with its port where it has one. */
  readonly host?: string | undefined;
  /** The provider, where it is known without a host. */
  readonly provider?: string | undefined;
}

/** The store of own prices. */
interface StoredPrices {
  list(): Promise<readonly PriceEntry[]>;
}

export class Pricing {
  readonly #stored: StoredPrices;
  readonly #given: PriceList;
  readonly #nowMs: () => number;
  #own: PriceList | undefined;
  #readMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(stored: StoredPrices, given: readonly PriceEntry[], nowMs: () => number) {
    this.#stored = stored;
    this.#given = new PriceList(given);
    this.#nowMs = nowMs;
  }

  /** Whether the stored prices have not been read yet. */
  get isUnread(): boolean {
    return this.#own === undefined;
  }

  /** Whether the stored prices were read too long ago. */
  get isOutdated(): boolean {
    return this.#nowMs() - this.#readMs >= KEPT_MS;
  }

  /**
   * Reads the stored prices. While the store cannot answer, those that were read before count; the
   * first reading must succeed.
   */
  async refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  /** Returns the price of a model; `undefined` where none is known. */
  find({ model, host, provider }: PricedModel): Price | undefined {
    const own = this.#own?.find(model, host) ?? this.#given.find(model, host);
    if (own !== undefined) return own;
    const known = provider ?? (host === undefined ? undefined : providerOfHost(host));
    return shippedPrices().find(model, known);
  }

  async #read(): Promise<void> {
    try {
      this.#own = new PriceList(await this.#stored.list());
    } catch (error) {
      if (this.#own === undefined) throw error;
    }
    this.#readMs = this.#nowMs();
  }
}

/** Warns once that calls of a model are not counted as money. */
export function warnUnpriced(model: string): void {
  const sentence = `Calls of ${model} are not counted as money: it has no price`;
  warnOnce(UNPRICED_CODE, `${sentence}. Set one: zae-limiter prices set ${model} --input …`);
}
