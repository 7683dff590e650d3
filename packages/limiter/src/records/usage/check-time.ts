import { show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";

/** Checks a time of a query, and formats it so that it compares with stored times as text. */
export function checkTime(
  field: string,
  value: Date | string | undefined,
  format: (ms: number) => string,
): string | undefined {
  if (value === undefined) return undefined;
  const ms = value instanceof Date ? value.getTime() : Date.parse(value);
  if (!Number.isNaN(ms)) return format(ms);
  throw new ValidationError(field, value, `expected a date or its ISO text, got ${show(value)}`);
}
