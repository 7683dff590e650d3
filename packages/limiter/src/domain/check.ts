/** Small checks shared by everything that takes input from users. */

import { shorten } from "../base/shorten.ts";
import { ValidationError } from "./errors/errors.ts";

/** The most tokens a capacity, a refill amount or a single amount may have: 10^12. */
export const TOKENS_MAX = 1_000_000_000_000;
/** The longest period of a rate and the longest session, in seconds: 31 years. */
export const PERIOD_SECONDS_MAX = 1_000_000_000;

/** Returns a whole number within bounds; throws a `ValidationError` for anything else. */
export function checkInteger(field: string, value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value)) {
    throw new ValidationError(field, value, `expected a whole number, got ${show(value)}`);
  }
  if (value < min) {
    const bound = min === 1 ? "must be positive" : `must be at least ${min}`;
    throw new ValidationError(field, value, `${bound}, got ${value}`);
  }
  // Beyond the safe integers a number may have lost digits, whatever the caller allows.
  const most = Math.min(max, Number.MAX_SAFE_INTEGER);
  if (value > most) {
    throw new ValidationError(field, value, `must be at most ${most}, got ${value}`);
  }
  return value;
}

/** Returns a number within bounds; without `max` it may be `Infinity`. */
export function checkNumber(field: string, value: unknown, min: number, max?: number): number {
  if (typeof value === "number" && value >= min && value <= (max ?? value)) return value;
  const form =
    max === undefined || max === Number.MAX_VALUE ? `>= ${min}` : `from ${min} to ${max}`;
  throw new ValidationError(field, value, `expected a number ${form}, got ${show(value)}`);
}

/** Returns a text that must be one of a few. */
export function checkChoice<T extends string>(
  field: string,
  value: unknown,
  choices: readonly T[],
): T {
  if ((choices as readonly unknown[]).includes(value)) return value as T;
  const expected = choices.map((choice) => `"${choice}"`).join(" or ");
  throw new ValidationError(field, value, `expected ${expected}, got ${show(value)}`);
}

/** Throws unless the value is a function. */
export function checkFunction(field: string, value: unknown): void {
  if (typeof value === "function") return;
  throw new ValidationError(field, value, `expected a function, got ${show(value)}`);
}

/** Throws unless the value is true, false or undefined. */
export function checkFlag(field: string, value: unknown): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new ValidationError(field, value, `expected true or false, got ${show(value)}`);
}

/** Throws unless the value is an object; the error shows the form it should have. */
export function checkOptions(field: string, value: unknown, form: string): void {
  if (!isPlainObject(value)) {
    throw new ValidationError(field, value, `expected ${form}, got ${show(value)}`);
  }
}

/**
 * Throws unless the value is an object that has only the named fields. An unknown name is most
 * likely a typo, and a typo must not silently mean the default.
 */
export function checkFields(field: string, value: unknown, names: readonly string[]): void {
  if (!isPlainObject(value)) checkOptions(field, value, `an object like { ${names.join(", ")} }`);
  for (const name of Object.keys(value as object)) {
    if (names.includes(name)) continue;
    throw new ValidationError(
      `${field}.${shorten(name)}`,
      (value as Record<string, unknown>)[name],
      `there is no "${shorten(name)}" here; expected ${names.join(", ")}`,
    );
  }
}

/** Throws when a condition that only a bug in this library can break does not hold. */
export function invariant(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Error(`zae-limiter has a bug: ${sentence}`);
}

/** Returns whether a value is an object literal. A map or a class instance has no own fields. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Returns whether a value is an object whose class is `Object`: a cheaper form of `isPlainObject`
 * for fast paths. False for a literal without prototype; true for an object that inherits from a
 * literal, whose inherited fields then count like its own.
 */
export function isLiteral(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && value.constructor === Object;
}

/** Returns a value as it appears in a sentence: text in quotes, shortened. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(shorten(value));
  if (value === null || value === undefined) return String(value);
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  if (typeof value === "function") return "a function";
  return typeof value === "bigint" ? `${value}n` : String(value);
}
