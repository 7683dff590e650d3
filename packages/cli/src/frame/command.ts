/**
 * Commands as data. A command says what it takes and what it does; reading the command line, help,
 * completion and the reference page are made from that, the same for all.
 */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** An option, in the notation of commander: `-r, --resource <name>`. */
export interface OptionSpec {
  readonly flags: string;
  readonly text: string;
  readonly default?: string | number | boolean;
  readonly choices?: readonly string[];
  readonly required?: true;
  /** May be there several times; the command gets an array, empty when it is not there. */
  readonly repeat?: true;
  /** Reads the text; a `UsageError` says what was expected. */
  readonly parse?: (text: string) => unknown;
}

/** An argument: `<id>`, `[id]` or `<names...>`. */
export interface ArgumentSpec {
  readonly name: string;
  readonly text: string;
  readonly choices?: readonly string[];
}

/**
 * The access of a command to the store.
 * - `read`: nothing is changed, not even by opening; where no file is, it is as if it were empty.
 * - `change`: works on what is there, and makes no file and no namespace.
 * - `write`: an embedded store is made when it is not there, and so is its namespace.
 */
export type Access = "read" | "change" | "write";

/** The form of `--json`: type names, objects and arrays of them. For the reference and tests. */
export type Shape = string | readonly [Shape] | { readonly [name: string]: Shape };

/** The result of a command; each form is made only when it is needed. */
export interface Result {
  readonly json: () => JsonValue;
  /** The output for people, without the line end at its end. */
  readonly text: () => string | Promise<string>;
  /** 0 when absent. */
  readonly code?: number;
}

/** The result of a command that has printed everything itself. */
export interface Finished {
  readonly code: number;
}

/** One use of a command. */
export interface Call<Options = Record<string, never>> {
  /** Variadic arguments are at the end, one by one. */
  readonly args: readonly string[];
  readonly options: Options;
  readonly json: boolean;
  readonly terminal: Terminal;
  /** Opens the namespace that the options name. It is closed when the command ends. */
  open(access?: Access): Promise<Repository>;
  /** Opens the store without any namespace. */
  openStore(access?: Access): Promise<StoreAsItIs>;
  /** Returns a command that works on the same store and namespace, to suggest in a message. */
  hint(...words: readonly string[]): string;
  /** Returns a command for the same store, for a command that takes no namespace. */
  storeHint(...words: readonly string[]): string;
  /** Asks, unless `--yes` was given. Needs `confirms`. */
  confirm(question: string): Promise<boolean>;
  /** Asks in the same way; a no throws a `CommandFailure` that says that nothing was `done`. */
  agree(question: string, done: string): Promise<void>;
  /** Prints a line for people in addition to the result. */
  note(text: string): void;
  /** Shows a line that the next one replaces, on a terminal; an empty one removes it. */
  progress(text: string): void;
}

/** A command without commands below it. */
export interface Leaf<Options = never> {
  readonly name: string;
  /** Another name, which earlier versions use. */
  readonly alias?: string;
  readonly summary: string;
  /** More sentences for its help. */
  readonly details?: string;
  readonly arguments?: readonly ArgumentSpec[];
  readonly options?: readonly OptionSpec[];
  /** Adds the options that name a store, and says what happens to it. */
  readonly store?: Access;
  /** `false`: works on the store as a whole, so there is no `--namespace`. */
  readonly namespaced?: false;
  /** Adds `--yes`. */
  readonly confirms?: true;
  readonly examples?: readonly string[];
  readonly json: Shape;
  readonly run: (call: Call<Options>) => Promise<Result | Finished>;
}

/** Commands under a common word. */
export interface Group {
  readonly name: string;
  readonly summary: string;
  /** More sentences for its help. */
  readonly details?: string;
  readonly commands: readonly Leaf[];
}

export function isGroup(node: Group | Leaf): node is Group {
  return "commands" in node;
}

/** Declares a command; its options are typed here and nowhere else. */
export function leaf<Options = Record<string, never>>(definition: Leaf<Options>): Leaf {
  return definition as unknown as Leaf;
}

/** The command line is wrong in a way that only the command can know. */
export class UsageError extends Error {}

/** A command that failed; the line says why, and what to do. */
export class CommandFailure extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
