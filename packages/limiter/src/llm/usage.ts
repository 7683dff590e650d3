/** Usage of a call in tokens, as far as it is known. */

import { TOKENS_MAX } from "../domain/check.ts";

/** Tokens of one call. */
export interface Usage {
  /** Input that the model read, without cached input; writing a cache counts here. */
  readonly input: number;
  /** Input that came from the provider's cache. */
  readonly cached: number;
  /** Output with reasoning. */
  readonly output: number;
}

/** Usage that an answer or an event states; providers send the parts at different times. */
export type KnownUsage = { readonly [Part in keyof Usage]?: number | undefined } & {
  /** Tokens of the output that are reasoning, of which the text may show nothing. */
  readonly reasoning?: number | undefined;
  /** The provider stated numbers that cannot be true: nothing is known. */
  readonly isAbsurd?: true;
};

/** Usage as a provider writes it, unchecked. */
export interface StatedUsage {
  readonly input: unknown;
  readonly cached: unknown;
  /** Whether `input` includes `cached`. */
  readonly includesCached: boolean;
  /** Input that was written to a cache, where `input` does not include it. */
  readonly written?: unknown;
  readonly output: unknown;
  readonly reasoning?: unknown;
}

/** An object of parsed JSON, whose fields are anything. */
export type Fields = Readonly<Record<string, unknown>>;

export const NO_USAGE: Usage = { input: 0, cached: 0, output: 0 };
const ABSURD: KnownUsage = { isAbsurd: true };
const NO_FIELDS: Fields = Object.freeze({});

/** Returns usage whose parts are all possible; `ABSURD` where a single one is not. */
export function checkedUsage(stated: StatedUsage): KnownUsage {
  const { includesCached: _, ...parts } = stated;
  for (const part of Object.values(parts)) {
    if (part !== undefined && part !== null && countOf(part) === undefined) return ABSURD;
  }
  const usage = {
    ...inputOf(stated),
    output: countOf(stated.output),
    reasoning: countOf(stated.reasoning),
  };
  return totalOf(usage) > TOKENS_MAX ? ABSURD : usage;
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
