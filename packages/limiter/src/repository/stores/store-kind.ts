/**
 * Kinds of stores: `memory`, `sqlite`, `postgres`, `redis`, `dynamodb`. Each is one file here and
 * one line in `stores.ts`; no file outside this folder asks which kind a store is.
 */

import type { ValidationError } from "../../domain/errors/errors.ts";
import type { Backend, StoreTraits } from "../backend.ts";
import type { MigrateOptions, OpenOptions } from "../options.ts";
import type { OptionOwner } from "./open-option.ts";

/** The place of a store. Each kind adds what it needs to open one. */
export interface StoreLocation {
  readonly kind: string;
  /** The namespace that the address names. */
  readonly namespace: string | undefined;
}

/** An address in its parts, as `scheme:place?parameters`. */
export interface StoreAddress {
  /** One of the schemes of the kind, in lower case. */
  readonly scheme: string;
  /** The text between the colon of the scheme and the question mark. */
  readonly place: string;
  /** Values of the parameters that the kind lists; none is empty. */
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly namespace: string | undefined;
  /** Returns the error for an address that is wrong: the accepted forms, then `detail`. */
  refusal(detail: string): ValidationError;
}

/** A kind of store. */
export interface StoreKind<
  Location extends StoreLocation = StoreLocation,
  Options extends OpenOptions = OpenOptions,
> extends OptionOwner {
  /** The `kind` of its locations. */
  readonly name: Location["kind"];
  /** The words that its addresses begin with. */
  readonly schemes: readonly string[];
  /** An address without parameters, as messages show it: `sqlite:<file>`. */
  readonly form: string;
  /** Parameters of an address besides `namespace`, each with a placeholder for its value. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly traits: StoreTraits;
  /** Reads an address; throws `address.refusal` when it names no store. */
  parse(address: StoreAddress): Location;
  /** Returns the address without its namespace, with credentials, to open the store again. */
  address(location: Location): string;
  /** Returns the name of a store for messages. It never shows credentials. */
  describe(location: Location): string;
  /** Opens a store, and loads its adapter when that is not loaded yet. Writes nothing. */
  open(location: Location, options: Options): Promise<Backend>;
  /** Creates the schema of a store or brings it up; returns its versions before and after. */
  migrate?(location: Location, options: MigrateOptions): Promise<{ from: number; to: number }>;
}
