/** Small checks shared by everything that takes input from users. */

import { ValidationError } from "./errors.ts";

/** The most tokens a capacity, a refill amount or a single amount may have: 10^12. */
export const TOKENS_MAX = 1_000_000_000_000;

/** A whole number within bounds, or a `ValidationError` that says what was expected and what came. */
export function checkInteger(field: string, value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) {
    throw new ValidationError(field, value, `expected a whole number, got ${show(value)}`);
  }
  if (value < min) {
    const bound = min === 1 ? "must be positive" : `must be at least ${min}`;
    throw new ValidationError(field, value, `${field} ${bound}, got ${value}`);
  }
  if (value > max) {
    throw new ValidationError(field, value, `${field} must be at most ${max}, got ${value}`);
  }
  return value;
}

/** A programmer's assumption that can only be broken by a bug in this library. */
export function invariant(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Error(`zae-limiter has a bug: ${sentence}`);
}

/** A value as it should appear in a sentence: text in quotes, everything with its type. */
export function show(value: unknown): string {
  if (typeof value === "string") return `${JSON.stringify(value)} (string)`;
  if (value === null || value === undefined) return String(value);
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  return `${String(value)} (${typeof value})`;
}
