/** The options of `open` as tables, from which their checks and their lists are derived. */

import { checkOptions, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";

/** One option of `open`. */
export interface OpenOption<Value = unknown> {
  /** The type that `typeof` reports; `any` where only `check` can decide. */
  readonly type: "string" | "number" | "function" | "object" | "any";
  /** Throws when a value of that type is out of range. */
  check?(value: Value): unknown;
  /** The value without a setting; absent: it is none, or found elsewhere. */
  readonly default?: Value;
  /** The meaning of the option, as docs/reference/options.md has it. */
  readonly doc: string;
  /** Added to the refusal by a store that does not have the option. */
  readonly elsewhere?: string;
}

/** An entry for each option of a type. */
export type OptionTable<Options> = {
  readonly [Name in keyof Options]-?: OpenOption<Exclude<Options[Name], undefined>>;
};

/** A table whose options are known by name only. */
export type AnyOptionTable = Readonly<Record<string, OpenOption>>;

/** Some stores, and the options that only they have. */
export interface OptionOwner {
  /** How messages call the store: `DynamoDB`. */
  readonly title: string;
  readonly options: AnyOptionTable;
}

/**
 * Refuses unknown names (most are typos), wrong types and values out of range. `owners` are all
 * stores with options of their own: a message names those that accept a refused option.
 */
export function checkByTable(
  options: object,
  accepted: AnyOptionTable,
  owners: readonly OptionOwner[],
): void {
  checkOptions("options", options, "an object of options");
  const set: { readonly value: unknown; readonly option: OpenOption }[] = [];
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const having = owners.filter((owner) => Object.hasOwn(owner.options, name));
    const option = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
    // An option of another store that is not set is as good as absent.
    if (option === undefined && value === undefined && having.length > 0) continue;
    if (option === undefined) throw unknownOption(name, value, Object.keys(accepted), having);
    if (value === undefined) continue;
    const { type } = option;
    if (type !== "any" && typeof value !== type) {
      throw new ValidationError(name, value, `expected a ${type}, got ${show(value)}`);
    }
    set.push({ value, option });
  }
  for (const { value, option } of set) option.check?.(value);
}

function unknownOption(
  name: string,
  value: unknown,
  accepted: readonly string[],
  having: readonly OptionOwner[],
): ValidationError {
  const list = `expected ${accepted.join(", ")}`;
  if (having.length === 0) {
    return new ValidationError(name, value, `"${name}" is not an option; ${list}`);
  }
  const titles = having.map(({ title }) => title);
  const only = `"${name}" is for ${listed(titles)} only`;
  const elsewhere = having[0]?.options[name]?.elsewhere;
  return new ValidationError(name, value, `${only}; ${elsewhere ?? list}`);
}

/** Returns `a`, `a and b` or `a, b and c`. */
function listed(names: readonly string[]): string {
  const first = names.slice(0, -1).join(", ");
  const last = names.at(-1) as string;
  return first === "" ? last : `${first} and ${last}`;
}
