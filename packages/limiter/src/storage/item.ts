/** What a store keeps: items of named attributes under a two-part key. */

/** The key of an item. */
export interface Key {
  /** The partition key. */
  readonly PK: string;
  /** The sort key. */
  readonly SK: string;
}

/**
 * An attribute. Numbers are integers or decimals as JavaScript holds them; an integer beyond 2^53
 * is read as a bigint, so that no digit is lost. A set is never empty: it is absent instead.
 */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | ReadonlySet<string>
  | readonly Value[]
  | OpaqueValue
  | { readonly [name: string]: Value };

/** An attribute of a type that this library never writes. It is kept unchanged. */
export class OpaqueValue {
  readonly wire: object;

  constructor(wire: object) {
    this.wire = wire;
  }
}

/** An item: its key and any other attributes. Immutable; stores share the objects they hand out. */
export interface Item extends Key {
  /** The attributes by name. */
  readonly [name: string]: Value;
}

/** The key of an item, without its other attributes. */
export function keyOf(item: Key): Key {
  return { PK: item.PK, SK: item.SK };
}
