/** The prices of a namespace: stored by model and upstream, and audited. */

import { checkFields } from "../domain/check.ts";
import type { JsonValue } from "../domain/json.ts";
import { checkResource } from "../domain/names.ts";
import { Price, type PriceSpec } from "../domain/price.ts";
import { checkPricedModel, type PriceEntry } from "../domain/price-list.ts";
import { type Item, jsonAt, textAt, type Value } from "../storage/item.ts";
import { ITEM_EXISTS } from "../storage/item-store.ts";
import { checkAuditor } from "./audit.ts";
import type { AuditedWrites } from "./audited-writes.ts";
import { inNamespace, PRICE_PREFIX, priceKey, pricePartition } from "./keys.ts";
import type { RecordContext } from "./record-context.ts";

/** The upstream of a price, and the principal of a change. */
export interface PriceOptions {
  /** The upstream that the price is for; absent: all. */
  readonly upstream?: string;
  /** The name that goes into the audit log. */
  readonly principal?: string;
}

/**
 * Own prices of models: they win over those of a config file and over the shipped list prices.
 *
 * @example
 * ```ts
 * import { Repository } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.prices.set('gpt-5', { input: '1.25', output: '10' }, { principal: 'ops' });
 * await repo.prices.set('llama-*', { free: true }, { upstream: 'vllm' });
 * console.log((await repo.prices.get('gpt-5'))?.output); // 10
 * console.log((await repo.prices.list()).length); // 2
 * await repo.close();
 * ```
 */
export class PriceRecords {
  readonly #context: RecordContext;
  readonly #writes: AuditedWrites;

  constructor(context: RecordContext, writes: AuditedWrites) {
    this.#context = context;
    this.#writes = writes;
  }

  /**
   * Stores the price of a model, or of all models that begin alike (`gpt-5*`); dollars for a
   * million tokens as decimal text. Calls that were granted before keep the price they had.
   */
  async set(model: string, price: PriceSpec, options: PriceOptions = {}): Promise<void> {
    const { upstream, principal } = checkedPlace(model, options);
    const { spec } = Price.from(price);
    const { namespaceId } = this.#context;
    const key = priceKey(namespaceId, model, upstream);
    const put: Item = {
      ...key,
      ...inNamespace(namespaceId, key.PK),
      model,
      ...(upstream === undefined ? {} : { upstream }),
      price: spec as Value,
    };
    const details = { model, upstream: upstream ?? null, price: spec as unknown as JsonValue };
    await this.#writes.write({ put }, { action: "price_set", principal, details });
  }

  /** Returns the price that is stored for exactly this name and upstream. */
  async get(model: string, options: PriceOptions = {}): Promise<PriceSpec | undefined> {
    const { upstream } = checkedPlace(model, options);
    const { store, namespaceId } = this.#context;
    const item = await store.get(priceKey(namespaceId, model, upstream), { consistent: true });
    return item === undefined ? undefined : entryIn(item)?.price;
  }

  /** Returns all stored prices, in the order of their models. */
  async list(): Promise<PriceEntry[]> {
    const { store, namespaceId } = this.#context;
    const partition = pricePartition(namespaceId);
    const entries: PriceEntry[] = [];
    const query = { partition, sort: { beginsWith: PRICE_PREFIX }, consistent: true } as const;
    for await (const item of store.query(query)) {
      const entry = entryIn(item);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  /** Removes a stored price; returns whether there was one. */
  async delete(model: string, options: PriceOptions = {}): Promise<boolean> {
    const { upstream, principal } = checkedPlace(model, options);
    const { store, namespaceId } = this.#context;
    const key = priceKey(namespaceId, model, upstream);
    if ((await store.get(key, { consistent: true })) === undefined) return false;
    const details = { model, upstream: upstream ?? null };
    const write = { delete: key, condition: [ITEM_EXISTS] };
    return this.#writes.write(write, { action: "price_deleted", principal, details });
  }
}

function checkedPlace(model: string, options: PriceOptions): PriceOptions {
  checkPricedModel(model);
  checkFields("options", options, ["upstream", "principal"]);
  const { upstream, principal } = options;
  if (upstream !== undefined) checkResource(upstream);
  checkAuditor(principal);
  return options;
}

/** Returns the entry in an item; `undefined` where it holds no price that this release reads. */
function entryIn(item: Item): PriceEntry | undefined {
  const model = textAt(item, "model");
  const upstream = textAt(item, "upstream");
  const price = jsonAt(item, "price") as PriceSpec;
  try {
    Price.from(price);
    return upstream === undefined
      ? { model: checkPricedModel(model), price }
      : { model: checkPricedModel(model), upstream, price };
  } catch {
    return undefined;
  }
}
