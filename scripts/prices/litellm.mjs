/** Reads the table of LiteLLM: dollars for one token, with tiers and long prompts in field names. */

import { dollars, PROVIDERS, present } from "./decimal.mjs";

const PARTS = {
  input_cost_per_token: "input",
  cache_read_input_token_cost: "cachedInput",
  cache_creation_input_token_cost: "cacheWrite",
  cache_creation_input_token_cost_above_1hr: "cacheWrite1h",
  input_cost_per_audio_token: "audioInput",
  input_cost_per_image_token: "imageInput",
  output_cost_per_token: "output",
  output_cost_per_reasoning_token: "reasoning",
  output_cost_per_audio_token: "audioOutput",
  output_cost_per_image_token: "imageOutput",
};
const TIERS = { flex: "flex", priority: "priority", batches: "batch" };
const MODES = new Set(["chat", "completion", "responses", "embedding"]);
const LONG = /_above_(\d+)k_tokens/;

/** Returns prices by provider and model. */
export function litellmPrices(data) {
  const byProvider = new Map(
    Object.entries(PROVIDERS).flatMap(([name, { litellm }]) => litellm.map((each) => [each, name])),
  );
  const prices = Object.fromEntries(Object.keys(PROVIDERS).map((name) => [name, {}]));
  for (const [key, entry] of Object.entries(data)) {
    const provider = byProvider.get(entry.litellm_provider);
    if (provider === undefined || !MODES.has(entry.mode)) continue;
    const price = priceOf(entry);
    const prefix = `${entry.litellm_provider}/`;
    const model = key.startsWith(prefix) ? key.slice(prefix.length) : key;
    if (price !== undefined) prices[provider][model] ??= price;
  }
  return prices;
}

function priceOf(entry) {
  const standard = ratesOf(entry, "");
  if (standard.input === undefined) return undefined;
  const tiers = Object.entries(TIERS).flatMap(([suffix, name]) => {
    const rates = ratesOf(entry, `_${suffix}`);
    return Object.keys(rates).length === 0 ? [] : [[name, rates]];
  });
  return present({
    ...standard,
    tiers: tiers.length === 0 ? undefined : Object.fromEntries(tiers),
  });
}

/** Returns the prices whose fields end in a tier; an empty one is the standard tier. */
function ratesOf(entry, tier) {
  const base = {};
  const long = new Map();
  for (const [field, value] of Object.entries(entry)) {
    if (tier !== "" && !field.endsWith(tier)) continue;
    const name = field.slice(0, field.length - tier.length);
    const above = LONG.exec(name)?.[1];
    const part = PARTS[name.replace(LONG, "")];
    const price = part && dollars(typeof value === "number" ? value * 1e6 : undefined);
    if (price === undefined) continue;
    if (above === undefined) base[part] = price;
    else long.set(Number(above) * 1000, { ...long.get(Number(above) * 1000), [part]: price });
  }
  const longContext = [...long]
    .sort(([left], [right]) => left - right)
    .map(([above, parts]) => ({ above, ...parts }));
  return present({ ...base, longContext: longContext.length === 0 ? undefined : longContext });
}
