/** Usage of a call in tokens, as far as it is known. */

import { TOKENS_MAX } from "../domain/check.ts";
import type { PricedTokens } from "../domain/price.ts";

/** Tokens by the parts that are priced apart, where there are more than input and cached input. */
interface UsageParts {
  /** The parts of the input together, cached input among them. */
  readonly inputParts?: PricedTokens | undefined;
  /** Parts of the output with a price of their own, such as reasoning; the rest is plain. */
  readonly outputParts?: PricedTokens | undefined;
  /** The tier of service that the provider names. */
  readonly tier?: string | undefined;
  /** The output that money is counted by, where it is estimated in another way than tokens. */
  readonly moneyOutput?: number | undefined;
}

/** Tokens of one call. */
export interface Usage extends UsageParts {
  /** Input that the model read, without cached input; writing a cache counts here. */
  readonly input: number;
  /** Input that came from the provider's cache. */
  readonly cached: number;
  /** Output with reasoning. */
  readonly output: number;
}

/** Usage that an answer or an event states; providers send the parts at different times. */
export type KnownUsage = UsageParts & {
  readonly input?: number | undefined;
  readonly cached?: number | undefined;
  readonly output?: number | undefined;
  /** The provider stated numbers that cannot be true: nothing is known. */
  readonly isAbsurd?: true;
};

/** Usage as a provider writes it, unchecked. */
export interface StatedUsage {
  readonly input: unknown;
  readonly cached: unknown;
  /** Whether `input` includes `cached` and `written`. */
  readonly includesCached: boolean;
  /** Input that was written to a cache. */
  readonly written?: unknown;
  /** The part of `written` that the cache keeps for an hour. */
  readonly writtenForHour?: unknown;
  readonly audioInput?: unknown;
  readonly imageInput?: unknown;
  readonly output: unknown;
  readonly reasoning?: unknown;
  readonly audioOutput?: unknown;
  readonly imageOutput?: unknown;
  readonly tier?: unknown;
}

/** An object of parsed JSON, whose fields are anything. */
export type Fields = Readonly<Record<string, unknown>>;

export const NO_USAGE: Usage = { input: 0, cached: 0, output: 0 };
const ABSURD: KnownUsage = { isAbsurd: true };
const NO_FIELDS: Fields = Object.freeze({});

/** Returns usage whose parts are all possible; `ABSURD` where a single one is not. */
export function checkedUsage(stated: StatedUsage): KnownUsage {
  const { includesCached, tier, ...counts } = stated;
  if (!Object.values(counts).every(isPossible)) return ABSURD;
  const { input, cached } = inputOf(stated);
  const usage = {
    input,
    cached,
    output: countOf(counts.output),
    ...partsOf(stated),
  };
  return totalOf(usage) > TOKENS_MAX ? ABSURD : usage;
}

/** Returns the parts with prices of their own; no field for those that the provider leaves out. */
function partsOf(stated: StatedUsage): UsageParts {
  const { tier } = stated;
  const outputParts = countsOf({
    reasoning: stated.reasoning,
    audioOutput: stated.audioOutput,
    imageOutput: stated.imageOutput,
  });
  return {
    ...presentIn("inputParts", inputPartsOf(stated)),
    ...presentIn("outputParts", outputParts),
    ...(typeof tier === "string" ? { tier } : {}),
  };
}

/** Returns the parts of the input; `undefined` where it is only read, or read from a cache. */
function inputPartsOf(stated: StatedUsage): PricedTokens | undefined {
  const { input, cached, writtenForHour, includesCached } = stated;
  const written = countOf(stated.written) ?? 0;
  const apart = countsOf({ audioInput: stated.audioInput, imageInput: stated.imageInput });
  const given = countOf(input);
  if (given === undefined || (apart === undefined && written === 0)) return undefined;
  const cacheWrite1h = Math.min(written, countOf(writtenForHour) ?? 0);
  const cachedInput = countOf(cached) ?? 0;
  const others = (apart?.audioInput ?? 0) + (apart?.imageInput ?? 0);
  const plain = includesCached ? given - cachedInput - written - others : given - others;
  return {
    ...apart,
    input: Math.max(0, plain),
    cachedInput,
    cacheWrite: written - cacheWrite1h,
    cacheWrite1h,
  };
}

/** Returns counts above 0; `undefined` where there is none. */
function countsOf(parts: Readonly<Record<string, unknown>>): PricedTokens | undefined {
  const counted = Object.entries(parts).flatMap(([name, value]) => {
    const count = countOf(value) ?? 0;
    return count === 0 ? [] : [[name, count] as const];
  });
  return counted.length === 0 ? undefined : Object.fromEntries(counted);
}

function presentIn<Name extends string>(name: Name, value: PricedTokens | undefined) {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, PricedTokens>>;
}

/** Returns the tokens of usage by the parts that are priced. */
export function pricedTokens(usage: Usage): PricedTokens {
  const { input, cached, inputParts, outputParts = {} } = usage;
  const output = usage.moneyOutput ?? usage.output;
  const apart = Object.values(outputParts).reduce((sum, count) => sum + count, 0);
  return {
    ...(inputParts ?? { input, cachedInput: cached }),
    ...outputParts,
    output: Math.max(0, output - apart),
  };
}

function isPossible(part: unknown): boolean {
  return part === undefined || part === null || countOf(part) !== undefined;
}

function inputOf({ input, cached, written, includesCached }: StatedUsage): KnownUsage {
  const given = countOf(input);
  const stored = countOf(cached);
  if (given === undefined) return { cached: includesCached ? undefined : stored };
  if (!includesCached) return { input: given + (countOf(written) ?? 0), cached: stored };
  // A provider that states more cached input than input must not make the rest negative.
  const part = Math.min(given, stored ?? 0);
  return { input: given - part, cached: part };
}

/** Returns the tokens of usage together. */
export function totalOf({ input = 0, cached = 0, output = 0 }: KnownUsage): number {
  return input + cached + output;
}

/** Returns the object, or an empty one for anything else. */
export function fieldsOf(value: unknown): Fields {
  return objectOf(value) ?? NO_FIELDS;
}

/** Returns the object; `undefined` for anything else. */
export function objectOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

/** Returns a whole number of tokens up to 10^12; `undefined` for anything else. */
export function countOf(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= TOKENS_MAX
    ? (value as number)
    : undefined;
}

/** Returns the elements, or none for anything that is not an array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the object that a text in JSON is; `undefined` for anything else. */
export function parsedObject(text: string): Fields | undefined {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
