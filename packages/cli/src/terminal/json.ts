/** The JSON of commands, made from the shape that the reference shows. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";

/** `refill_amount` is the field `refillAmount`, and `overdrawn?` is `overdrawn`. */
type FieldName<Name extends string> = Name extends `${infer Known}?`
  ? FieldName<Known>
  : Name extends `${infer Head}_${infer Tail}`
    ? `${Head}${Capitalize<FieldName<Tail>>}`
    : Name;

type FieldsOf<Shape> = {
  readonly [Name in keyof Shape & string as FieldName<Name>]?: JsonValue | undefined;
};

/**
 * Returns the fields that the shape names, under their names in JSON. A field without a value is
 * `null`, or absent where the name in the shape ends with `?`.
 */
export function jsonOf<Shape extends object>(
  shape: Shape,
  fields: FieldsOf<Shape>,
): Readonly<Record<string, JsonValue>> {
  const given = fields as Readonly<Record<string, JsonValue | undefined>>;
  const entries = Object.keys(shape).flatMap((key) => {
    const name = key.replace(/\?$/, "");
    const value = given[name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())];
    return value === undefined && name !== key ? [] : [[name, value ?? null] as const];
  });
  return Object.fromEntries(entries);
}

/** Returns a number as JSON has it, which cannot say `Infinity`. */
export function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
