/** The options of `open`: tables of what every store takes and of what only some stores take. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { checkByTable, type Option, unknownOption } from "../../domain/options.ts";

/** One option of `open`. */
export interface OpenOption<Value = unknown> extends Option<Value> {
  /** The meaning of the option, as docs/reference/options.md has it. */
  readonly doc: string;
  /** Added to the refusal by a store that does not have the option. */
  readonly elsewhere?: string;
}

/** An entry for each option of a type. */
export type OpenOptionTable<Options> = {
  readonly [Name in keyof Options]-?: OpenOption<Exclude<Options[Name], undefined>>;
};

/** Some stores, and the options that only they have. */
export interface OptionOwner {
  /** The name of the store in messages, such as `DynamoDB`. */
  readonly title: string;
  readonly options: Readonly<Record<string, OpenOption>>;
}

/**
 * Checks options of `open` against those that a store accepts. `owners` are all stores with options
 * of their own: a message names those that accept a refused option.
 */
export function checkOpenTable(
  options: object,
  accepted: OptionOwner["options"],
  owners: readonly OptionOwner[],
): void {
  checkByTable(options, accepted, (name, value) => {
    const names = Object.keys(accepted);
    const having = owners.filter((owner) => Object.hasOwn(owner.options, name));
    if (having.length === 0) return unknownOption(name, value, names);
    // An option of another store that is not set is as good as absent.
    if (value === undefined) return undefined;
    const only = `"${name}" is for ${listed(having.map(({ title }) => title))} only`;
    const elsewhere = having[0]?.options[name]?.elsewhere ?? `expected ${names.join(", ")}`;
    return new ValidationError(name, value, `${only}; ${elsewhere}`);
  });
}

/** Returns `a`, `a and b` or `a, b and c`. */
function listed(names: readonly string[]): string {
  const first = names.slice(0, -1).join(", ");
  const last = names.at(-1) as string;
  return first === "" ? last : `${first} and ${last}`;
}
