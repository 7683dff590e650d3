/** What a call used, in tokens, as far as it is known. */

/** Tokens of one call. */
export interface Usage {
  /** Input that the model read, without cached input; writing a cache counts here. */
  readonly input: number;
  /** Input that came from the provider's cache. */
  readonly cached: number;
  /** Output with reasoning. */
  readonly output: number;
}

/** What an answer or an event tells; providers send the parts at different times. */
export type KnownUsage = { readonly [Part in keyof Usage]?: number | undefined };

/** An object of parsed JSON, whose fields are anything. */
export type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = Object.freeze({});

/** Returns the object, or an empty one for anything else. */
export function fieldsOf(value: unknown): Fields {
  return objectOf(value) ?? NO_FIELDS;
}

/** Returns the object; `undefined` for anything else. */
export function objectOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

/** Returns a count of tokens; `undefined` for anything that cannot be one. */
export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0
    ? Math.ceil(value)
    : undefined;
}

/** Returns the elements, or none for anything that is not an array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Splits a total that includes cached input. */
export function inputParts(total: number | undefined, cached: number | undefined): KnownUsage {
  if (total === undefined) return {};
  const fromCache = Math.min(total, cached ?? 0);
  return { input: total - fromCache, cached: fromCache };
}
