/** Prices as text: a line, a row of a list, a difference. */

import { signOf } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { PRICED_PARTS, type PriceSpec } from "@zae-limiter/limiter/domain/price.ts";
import type { PriceEntry } from "@zae-limiter/limiter/domain/price-list.ts";

/** Returns the standard price in words: `$1.25 for input, $10 for output`. */
export function priceText(price: PriceSpec): string {
  if (price.free === true) return "nothing";
  const sign = signOf(price.currency ?? "usd");
  const parts = PRICED_PARTS.flatMap((part) => {
    const value = price[part];
    return value === undefined ? [] : [`${sign}${value} for ${wordsOf(part)}`];
  });
  const tokens = parts.length === 0 ? [] : [`${parts.join(", ")}, a million tokens`];
  const request = price.perRequest === undefined ? [] : [`${sign}${price.perRequest} a request`];
  return [...tokens, ...request, ...moreOf(price)].join("; ");
}

/** Returns the columns of a list. */
export function priceRow({ model, upstream, price }: PriceEntry): string[] {
  const free = price.free === true ? ["free"] : [];
  const request = price.perRequest === undefined ? [] : [`${price.perRequest} a request`];
  const { input = "", cachedInput = "", output = "" } = price;
  const currency = price.currency === undefined ? [] : [`in ${price.currency}`];
  const more = [...currency, ...free, ...request, ...moreOf(price)].join("; ");
  return [model, upstream ?? "", input, cachedInput, output, more];
}

/** Returns the parts that differ: `input 1.1, 1.25`; `undefined` where none does. */
export function differenceText(own: PriceSpec, shipped: PriceSpec | undefined): string | undefined {
  if (shipped === undefined) return "is not shipped";
  if (own.free === true) return "is free here";
  if ((own.currency ?? "usd") !== "usd") return `is in ${own.currency} here`;
  const parts = [...PRICED_PARTS, "perRequest", "discount"] as const;
  const different = parts.filter((part) => !isSame(own[part], shipped[part]));
  if (different.length === 0) return undefined;
  return different
    .map((part) => `${wordsOf(part)} ${own[part] ?? "-"}, ${shipped[part] ?? "-"}`)
    .join("; ");
}

/** Returns whether prices agree; a price that is not stated differs from none. */
function isSame(own: string | undefined, shipped: string | undefined): boolean {
  return own === undefined || Number(own) === Number(shipped);
}

function moreOf({ tiers, longContext, discount }: PriceSpec): string[] {
  const bounds = (longContext ?? []).map(({ above }) => `above ${above.toLocaleString("en-US")}`);
  return [
    ...(bounds.length === 0 ? [] : [`other prices ${bounds.join(", ")} input tokens`]),
    ...(tiers === undefined ? [] : [Object.keys(tiers).join(", ")]),
    ...(discount === undefined ? [] : [`times ${discount}`]),
  ];
}

/** Returns the name of a part in words: `cached input`. */
function wordsOf(part: string): string {
  return part.replace(/[A-Z]|\d/g, (letter) => ` ${letter.toLowerCase()}`).replace("1h", "1 h");
}
