/** `prices`: what models cost; own prices of a namespace, and the list prices that are shipped. */

import { CURRENCIES, type Currency } from "@zae-limiter/limiter/core/micro-dollars.ts";
import {
  PRICED_PARTS,
  type PricedPart,
  type PriceSpec,
} from "@zae-limiter/limiter/domain/price.ts";
import type { PriceEntry } from "@zae-limiter/limiter/domain/price-list.ts";
import { shippedPrices } from "@zae-limiter/limiter/llm/shipped-prices.ts";
import { CommandFailure, type Group, leaf, UsageError } from "../../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../../store/principal.ts";
import { table } from "../../terminal/table.ts";
import { differenceText, priceRow, priceText } from "./price-text.ts";

interface PlaceOptions extends PrincipalOptions {
  readonly upstream?: string;
}

interface SetOptions extends PlaceOptions {
  readonly free?: boolean;
  readonly discount?: string;
  readonly price?: PriceSpec;
  readonly perRequest?: string;
  readonly currency?: Currency;
  /** The prices of parts, by the names that commander gives their options. */
  readonly [part: string]: unknown;
}

const MODEL = {
  name: "<model>",
  text: "the name of a model, or its beginning with * at the end: 'gpt-5*'",
} as const;
const UPSTREAM_OPTION = {
  flags: "--upstream <host>",
  text: "only at this upstream, by the host of its address; default: all",
} as const;
const ENTRY_SHAPE = { model: "text", upstream: "text or null", price: "object" } as const;

const PART_TEXTS: Readonly<Partial<Record<PricedPart, string>>> = {
  cachedInput: "input from the provider's cache",
  cacheWrite: "input that is written to a cache for five minutes",
  cacheWrite1h: "input that is written to a cache for an hour",
  audioInput: "sound as input",
  imageInput: "pictures as input",
  audioOutput: "sound as output",
  imageOutput: "pictures as output",
};

/** Options of parts, as they are written on a command line: `--cached-input`. */
const PART_OPTIONS = PRICED_PARTS.map((part) => ({
  flags: `--${part.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} <usd>`,
  text: `dollars for a million tokens of ${PART_TEXTS[part] ?? part}`,
}));

const set = leaf<SetOptions>({
  name: "set",
  summary: "sets the price of a model",
  details:
    "Dollars for a million tokens, with at most six decimals. A part without a price costs what " +
    "the part it belongs to costs: cached input what input costs. Running gateways follow within " +
    "a minute; calls that were granted before keep the price they had.",
  arguments: [MODEL],
  store: "write",
  options: [
    ...PART_OPTIONS,
    { flags: "--per-request <usd>", text: "dollars for one request, whatever its tokens" },
    { flags: "--discount <factor>", text: "a factor for all of them: 0.9 is ten per cent off" },
    {
      flags: "--currency <name>",
      text: "the currency of the amounts, which limits in others cannot use; default: usd",
      choices: CURRENCIES,
    },
    { flags: "--free", text: "the model costs nothing, such as one of your own" },
    { flags: "--price <json>", text: "the whole price as JSON, with tiers", parse: specOf },
    UPSTREAM_OPTION,
    PRINCIPAL_OPTION,
  ],
  examples: [
    "prices set gpt-5 --input 1.25 --cached-input 0.125 --output 10",
    "prices set 'llama-*' --free --upstream 127.0.0.1:8000",
    "prices set mistral-large --input 1.80 --output 5.40 --currency eur",
  ],
  json: ENTRY_SHAPE,
  run: async ({ args, options, open }) => {
    const model = args[0] as string;
    const price = specFrom(options);
    const repository = await open("write");
    await repository.prices.set(model, price, placeOf(options));
    const entry = { model, ...upstreamOf(options), price };
    return {
      json: () => entryJson(entry),
      text: () => `${model}${atText(options)} costs ${priceText(price)}`,
    };
  },
});

const list = leaf<{ readonly shipped?: boolean; readonly match?: string }>({
  name: "list",
  summary: "lists own prices; with --shipped the list prices of this release",
  store: "read",
  options: [
    { flags: "--shipped", text: "the list prices that come with this release" },
    { flags: "--match <text>", text: "only models with this text in their name" },
  ],
  examples: ["prices list", "prices list --shipped --match gpt-5"],
  json: { date: "text or null", prices: [ENTRY_SHAPE] },
  run: async ({ options, open, terminal, hint }) => {
    const { shipped = false, match = "" } = options;
    const all = shipped ? shippedEntries() : await (await open("read")).prices.list();
    const entries = all.filter(({ model }) => model.includes(match));
    const date = shipped ? shippedPrices().date : null;
    const none = `There are no prices of your own; ${hint("prices", "list", "--shipped")} lists those that are shipped`;
    return {
      json: () => ({ date, prices: entries.map(entryJson) }),
      text: async () => {
        if (entries.length === 0) return shipped || match !== "" ? "No price matches" : none;
        const rows = entries.map(priceRow);
        const head = ["model", shipped ? "provider" : "upstream", "input", "cached", "output", ""];
        const listed = await table(head, rows, terminal.palette.title);
        return shipped ? `${listed}\nDollars for a million tokens, as of ${date}` : listed;
      },
    };
  },
});

const remove = leaf<PlaceOptions>({
  name: "delete",
  summary: "removes a price of your own; the shipped one counts again",
  arguments: [MODEL],
  store: "change",
  options: [UPSTREAM_OPTION, PRINCIPAL_OPTION],
  examples: ["prices delete gpt-5"],
  json: { model: "text", upstream: "text or null", deleted: "true or false" },
  run: async ({ args, options, open }) => {
    const model = args[0] as string;
    const deleted = await (await open("change")).prices.delete(model, placeOf(options));
    if (!deleted) throw new CommandFailure(`${model}${atText(options)} has no price of its own`);
    return {
      json: () => ({ model, upstream: options.upstream ?? null, deleted }),
      text: () => `Removed the price of ${model}${atText(options)}`,
    };
  },
});

const diff = leaf({
  name: "diff",
  summary: "shows where own prices differ from the shipped ones",
  store: "read",
  examples: ["prices diff"],
  json: { date: "text", differences: [{ ...ENTRY_SHAPE, shipped: "object or null" }] },
  run: async ({ open, terminal }) => {
    const shipped = shippedPrices();
    const own = await (await open("read")).prices.list();
    const rows = own.flatMap((entry) => {
      const other = shipped.find(entry.model)?.spec;
      const text = differenceText(entry.price, other);
      return text === undefined ? [] : [{ entry, other, text }];
    });
    return {
      json: () => ({
        date: shipped.date,
        differences: rows.map(({ entry, other }) => ({
          ...entryJson(entry),
          shipped: jsonOf(other),
        })),
      }),
      text: async () =>
        rows.length === 0
          ? `No price of your own differs from the list prices of ${shipped.date}`
          : table(
              ["model", "upstream", "own, and shipped"],
              rows.map(({ entry, text }) => [entry.model, entry.upstream ?? "", text]),
              terminal.palette.title,
            ),
    };
  },
});

const exported = leaf({
  name: "export",
  summary: "prints own prices as a list for a config file",
  store: "read",
  examples: ["prices export > prices.yaml"],
  json: { prices: [ENTRY_SHAPE] },
  run: async ({ open }) => {
    const entries = await (await open("read")).prices.list();
    return {
      json: () => ({ prices: entries.map(entryJson) }),
      text: async () => {
        const { stringify } = await import("../../terminal/yaml.ts");
        return stringify({ prices: entries }).trimEnd();
      },
    };
  },
});

export const prices: Group = {
  name: "prices",
  summary: "what models cost, for limits in money",
  commands: [set, list, remove, diff, exported],
};

/** Returns the price that the options state; either as a whole or by parts. */
function specFrom(options: SetOptions): PriceSpec {
  const { price, free, discount, perRequest, currency } = options;
  const parts = PRICED_PARTS.flatMap((part) => {
    const value = options[part];
    return typeof value === "string" ? [[part, value] as const] : [];
  });
  const stated = {
    ...Object.fromEntries(parts),
    ...(perRequest === undefined ? {} : { perRequest }),
    ...(discount === undefined ? {} : { discount }),
    ...(free === undefined ? {} : { free }),
    ...(currency === undefined ? {} : { currency }),
  };
  if (price === undefined) return stated;
  if (Object.keys(stated).length === 0) return price;
  throw new UsageError("expected --price or prices of parts, got both");
}

function specOf(text: string): PriceSpec {
  try {
    return JSON.parse(text) as PriceSpec;
  } catch {
    throw new UsageError('expected JSON such as {"input": "1.25", "output": "10"}');
  }
}

function placeOf(options: PlaceOptions): PlaceOptions {
  return { ...upstreamOf(options), ...principalOf(options) };
}

function upstreamOf({ upstream }: PlaceOptions): { readonly upstream?: string } {
  return upstream === undefined ? {} : { upstream };
}

function atText({ upstream }: PlaceOptions): string {
  return upstream === undefined ? "" : ` at ${upstream}`;
}

function shippedEntries(): PriceEntry[] {
  const entries = [...shippedPrices().entries()];
  return entries.map(({ model, provider, price }) => ({ model, upstream: provider, price }));
}

function entryJson({ model, upstream, price }: PriceEntry) {
  return { model, upstream: upstream ?? null, price: jsonOf(price) };
}

function jsonOf(price: PriceSpec | undefined) {
  return price === undefined ? null : JSON.parse(JSON.stringify(price));
}
