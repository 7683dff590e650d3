/** Bounds the output of a call by what its budgets still pay for. */

import type { LimitStatus } from "../domain/limit-status.ts";
import type { Price } from "../domain/price.ts";
import type { CallFacts } from "./call.ts";
import type { Format } from "./formats/format.ts";
import { countOf, type Fields, pricedTokens, type Usage } from "./usage.ts";

/** The most output of one choice where neither request nor operator bounds it, in tokens. */
const OUTPUT_MAX = 16_384;
/** With less output in one choice than this, an answer is of no use. */
const USEFUL_OUTPUT = 256;

/** Returns the most output that a call can have, over all choices. */
export function mostOutput({ outputMax, modelOutputMax, choices = 1 }: CallFacts): number {
  return outputMax ?? (modelOutputMax ?? OUTPUT_MAX) * choices;
}

/** Returns the output below which a call is refused rather than cut, over all choices. */
export function leastOutput(facts: CallFacts): number {
  const { choices = 1, thinkingTokens = 0 } = facts;
  return Math.min(mostOutput(facts), thinkingTokens + USEFUL_OUTPUT * choices);
}

/** Returns the output that limits in money pay for after the input; soft ones pay for all. */
export function affordableOutput(
  money: readonly LimitStatus[],
  price: Price,
  { input }: Usage,
  held = 0,
): number {
  const hard = money.filter(({ soft }) => soft !== true);
  const left = hard.map(({ available }) => price.outputFor(available + held, { input }));
  return Math.min(Number.POSITIVE_INFINITY, ...left);
}

/**
 * Returns the bound of the output of a call that was granted; `undefined` where the bound of the
 * request is low enough. Calls that reserve the most share a budget without passing it, so each has
 * what it has reserved; others have all that is left.
 */
export function outputCap(
  facts: CallFacts,
  usage: Usage,
  money: readonly LimitStatus[],
  price: Price,
  reservesMost: boolean,
): number | undefined {
  const held = price.cost(pricedTokens(usage));
  const reserved = usage.moneyOutput ?? usage.output;
  const paid = affordableOutput(money, price, usage, held);
  const cap = reservesMost && paid !== Number.POSITIVE_INFINITY ? reserved : paid;
  return cap < mostOutput(facts) ? Math.max(cap, 1) : undefined;
}

/** Returns a body whose bound of the output in one choice is at most this. */
export function withOutputMax({ maxFields }: Format, body: Fields, most: number): Fields {
  const given = maxFields.filter((field) => countOf(body[field]) !== undefined);
  const fields = given.length > 0 ? given : maxFields.slice(0, 1);
  const bounds = fields.map((field) => [field, Math.min(countOf(body[field]) ?? most, most)]);
  return { ...body, ...Object.fromEntries(bounds) };
}
