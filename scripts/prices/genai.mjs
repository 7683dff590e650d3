/** Reads the table of genai-prices: providers, models by rules of matching, prices with dates. */

import vm from "node:vm";
import { dollars, PROVIDERS, present } from "./decimal.mjs";

/** Prices per million tokens in the source, and the parts they are here. */
const PARTS = {
  input_mtok: "input",
  cache_read_mtok: "cachedInput",
  cache_write_mtok: "cacheWrite",
  cache_write_1h_mtok: "cacheWrite1h",
  input_audio_mtok: "audioInput",
  input_image_mtok: "imageInput",
  output_mtok: "output",
  output_reasoning_mtok: "reasoning",
  output_audio_mtok: "audioOutput",
  output_image_mtok: "imageOutput",
};

/** Returns prices by provider and model, as of a date. */
export function genaiPrices(script, date) {
  // The data is the first array of the module; it is read without running the rest.
  const text = script.slice(script.indexOf("["), script.search(/\n\][,;]/) + 2);
  const data = vm.runInNewContext(`(${text})`, Object.create(null), { timeout: 5000 });
  return Object.fromEntries(
    Object.entries(PROVIDERS).map(([name, { genai }]) => {
      const models = data.find(({ id }) => id === genai)?.models ?? [];
      return [name, modelsOf(models, date)];
    }),
  );
}

function modelsOf(models, date) {
  const prices = {};
  for (const { id, match, prices: given } of models) {
    const price = priceOf(currentOf(given, date));
    if (price === undefined) continue;
    for (const name of [id, ...namesOf(match)]) prices[name] ??= price;
  }
  return prices;
}

/** Returns the names of a rule; a rule that is no list of names and beginnings gives none. */
function namesOf(match) {
  if (match.equals !== undefined) return [match.equals];
  if (match.starts_with !== undefined) return [match.starts_with];
  return match.or === undefined ? [] : match.or.flatMap(namesOf);
}

/** Returns the prices in force: the last that began; of several times of day, the dearest. */
function currentOf(given, date) {
  if (!Array.isArray(given)) return given;
  const begun = given.filter(({ constraint }) => (constraint?.start_date ?? "") <= date);
  const ofDay = begun.filter(({ constraint }) => constraint?.type === "time_of_date");
  const dated = begun.filter(({ constraint }) => constraint?.type !== "time_of_date");
  const candidates = [dated.at(-1), ...ofDay].filter((each) => each !== undefined);
  const dear = (each) => baseOf(each.prices.output_mtok) ?? baseOf(each.prices.input_mtok) ?? 0;
  return candidates.sort((left, right) => dear(right) - dear(left))[0]?.prices ?? {};
}

function baseOf(value) {
  return typeof value === "object" ? value?.base : value;
}

function priceOf(given) {
  const base = {};
  const long = new Map();
  for (const [field, part] of Object.entries(PARTS)) {
    base[part] = dollars(baseOf(given[field]));
    for (const { start, price } of given[field]?.tiers ?? []) {
      long.set(start, { ...long.get(start), [part]: dollars(price) });
    }
  }
  const { requests_kcount: requests } = given;
  const perRequest = requests === undefined ? undefined : dollars(requests / 1000);
  if (base.input === undefined && perRequest === undefined) return undefined;
  const longContext = [...long].map(([above, parts]) => present({ above, ...parts }));
  return present({
    ...base,
    perRequest,
    longContext: longContext.length === 0 ? undefined : longContext,
  });
}
