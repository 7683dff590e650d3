/**
 * Options as tables: an entry for each option with its check, its default and its meaning. The list
 * of names, the check of all options and the filled-in defaults are derived from the table.
 */

import {
  checkChoice,
  checkFlag,
  checkFunction,
  checkInteger,
  checkNumber,
  checkOptions,
  show,
} from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

/** Throws a `ValidationError` for a value that the option of that name does not take. */
export type OptionCheck = (field: string, value: unknown) => unknown;

export interface Option<Value = unknown> {
  readonly check: OptionCheck;
  /** The value without a setting; absent: there is none, or it is found elsewhere. */
  readonly default?: Value;
  /** The meaning of the option, where a page of the documents is compared with it. */
  readonly doc?: string;
}

/** An entry for each option of a type. */
export type OptionTable<Options> = {
  readonly [Name in keyof Options]-?: Option<Exclude<Options[Name], undefined>>;
};

/** A table whose options are known by name only. */
export type AnyOptionTable = Readonly<Record<string, Option>>;

/** Options whose defaults are filled in. */
export type Filled<Options, Table> = Options & {
  readonly [Name in keyof Options & keyof Table as Table[Name] extends { default: unknown }
    ? Name
    : never]-?: Exclude<Options[Name], undefined>;
};

/** Takes every value. */
export const ANY: OptionCheck = () => undefined;
export const FLAG: OptionCheck = checkFlag;
export const FUNCTION: OptionCheck = checkFunction;
export const TEXT: OptionCheck = (field, value) => checkType(field, value, "string");
export const OBJECT: OptionCheck = (field, value) => checkType(field, value, "object");

/** Takes whole numbers within bounds. */
export function whole(min: number, max: number): OptionCheck {
  return (field, value) => checkInteger(field, value, min, max);
}

/** Takes numbers within bounds; without `max` also `Infinity`. */
export function number(min: number, max?: number): OptionCheck {
  return (field, value) => checkNumber(field, value, min, max);
}

/** Takes one of a few words. */
export function oneOf(...words: readonly string[]): OptionCheck {
  return (field, value) => checkChoice(field, value, words);
}

/** Takes objects of a class, also of one whose constructor is private. */
export function instanceOf(type: { readonly name: string; readonly prototype: object }) {
  return (field: string, value: unknown): void => {
    if (Object.prototype.isPrototypeOf.call(type.prototype, value as object)) return;
    throw new ValidationError(field, value, `expected a ${type.name}, got ${show(value)}`);
  };
}

/**
 * Checks options by their table and returns them with the defaults filled in. Names are checked
 * before values; an option that is `undefined` is absent. `unknown` makes the error for a name that
 * is not in the table, or returns `undefined` to accept it.
 */
export function checkByTable<Options extends object, Table extends AnyOptionTable>(
  options: Options,
  table: Table,
  unknown: (name: string, value: unknown) => ValidationError | undefined = (name, value) =>
    unknownOption(name, value, Object.keys(table)),
): Filled<Options, Table> {
  const names = Object.keys(table);
  const more = names.length > 4 ? ", …" : "";
  checkOptions("options", options, `an object like { ${names.slice(0, 4).join(", ")}${more} }`);
  const entries = Object.entries(options) as [string, unknown][];
  for (const [name, value] of entries) {
    const refusal = Object.hasOwn(table, name) ? undefined : unknown(name, value);
    if (refusal !== undefined) throw refusal;
  }
  const given = entries.filter(([, value]) => value !== undefined);
  for (const [name, value] of given) table[name]?.check(name, value);
  const defaults = Object.entries(table).flatMap(([name, option]) =>
    option.default === undefined ? [] : [[name, option.default] as const],
  );
  return Object.fromEntries([...defaults, ...given]) as Filled<Options, Table>;
}

/** Makes the error for an option that does not exist, which is most likely a typo. */
export function unknownOption(
  name: string,
  value: unknown,
  names: readonly string[],
): ValidationError {
  const reason = `"${name}" is not an option; expected ${names.join(", ")}`;
  return new ValidationError(name, value, reason);
}

function checkType(field: string, value: unknown, type: "string" | "object"): void {
  if (typeof value === type) return;
  const article = type === "object" ? "an" : "a";
  throw new ValidationError(field, value, `expected ${article} ${type}, got ${show(value)}`);
}
