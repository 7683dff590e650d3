/**
 * The order in which answers list the attributes of an item. DynamoDB lists those of similar items
 * in the same order; an attribute that is expected is compared, where another one must be cut out
 * of the text and looked up.
 */

/** Stands between the name of an attribute and its type. */
export const AFTER_NAME = '":{"';

export class ItemOrder {
  /** The names that the next answer is expected to have. */
  names: readonly string[] = [];
  /** The text before each value. */
  heads: readonly string[] = [];
  /** The names of the last answer that was in another order. */
  #other: readonly string[] = [];

  /** Takes note of another order; it is expected once it has come twice in a row. */
  learn(names: readonly string[]): void {
    if (areSame(names, this.#other)) {
      this.names = names;
      this.heads = names.map((name) => name + AFTER_NAME);
    }
    this.#other = names;
  }
}

function areSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name, at) => name === right[at]);
}
