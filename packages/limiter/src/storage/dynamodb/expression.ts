/**
 * Changes, conditions and key conditions as DynamoDB's expressions. An attribute is named by a
 * numbered placeholder, so that no name, however odd or reserved, can break an expression; only the
 * attributes that nearly every write mentions are named directly.
 */

import { entryOf } from "../../base/entry.ts";
import { type AttributeValue, encodeValue } from "../attribute-value.ts";
import type { Value } from "../item.ts";
import type { Change, Condition, Test } from "../item-store.ts";
import type { SortRange } from "../sort-range.ts";

/** The names and values that an expression refers to. */
interface Attributes {
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, AttributeValue>;
}

/**
 * Attributes of buckets that DynamoDB takes as they are: they begin with two letters and are no
 * reserved words. It would have to look up each placeholder, in every write to a bucket.
 */
const PLAIN_NAMES: ReadonlySet<string> = new Set([
  "ac",
  "cv",
  "disabled",
  "rf",
  "rn",
  "shard_count",
  "wm",
]);

/** The placeholder of the number 1, which nearly every write to a bucket has several times. */
export const ONE = ":one";
/** That number as an entry of the values of a request. */
export const ONE_VALUE = { [ONE]: encodeValue(1) } as const;

/** The expressions of one request, which share their placeholders. */
export class Expressions {
  readonly #names = new Map<string, string>();
  readonly #values: AttributeValue[] = [];
  #hasOne = false;

  /** Compiles a condition; returns nothing for one without tests. */
  condition(condition: Condition | undefined): { ConditionExpression?: string } {
    if (condition === undefined || condition.length === 0) return {};
    return { ConditionExpression: condition.map((test) => this.#test(test)).join(" AND ") };
  }

  /** Compiles a change; returns nothing for an empty one. */
  update(change: Change): { UpdateExpression?: string } {
    const clauses = [
      clause("SET", [
        ...entries(change.set, (name, value) => `${this.#name(name)} = ${this.#value(value)}`),
        ...entries(change.setIfAbsent, (name, value) => {
          const placeholder = this.#name(name);
          return `${placeholder} = if_not_exists(${placeholder}, ${this.#value(value)})`;
        }),
      ]),
      clause(
        "REMOVE",
        (change.remove ?? []).map((name) => this.#name(name)),
      ),
      clause("ADD", [
        ...entries(change.add, (name, amount) => `${this.#name(name)} ${this.#value(amount)}`),
        ...this.#members(change.addToSet),
      ]),
      clause("DELETE", this.#members(change.deleteFromSet)),
    ].filter((text) => text !== "");
    return clauses.length === 0 ? {} : { UpdateExpression: clauses.join(" ") };
  }

  /** Returns the items of one partition, as far as their sort key is asked for. */
  keys(
    partition: readonly [name: string, value: string],
    sort: string,
    range: SortRange,
  ): { KeyConditionExpression: string } {
    const whole = `${this.#name(partition[0])} = ${this.#value(partition[1])}`;
    const within = this.#within(sort, range);
    return { KeyConditionExpression: within === "" ? whole : `${whole} AND ${within}` };
  }

  /** Returns the placeholders, once all expressions are made. */
  attributes(): Attributes {
    return {
      ...(this.#names.size > 0 && {
        ExpressionAttributeNames: Object.fromEntries(
          [...this.#names].map(([name, placeholder]) => [placeholder, name]),
        ),
      }),
      ...((this.#hasOne || this.#values.length > 0) && {
        ExpressionAttributeValues: {
          ...(this.#hasOne && ONE_VALUE),
          ...Object.fromEntries(this.#values.map((value, index) => [`:v${index}`, value])),
        },
      }),
    };
  }

  #test(test: Test): string {
    const name = this.#name(test.name);
    if (test.is === "exists") return `attribute_exists(${name})`;
    if (test.is === "absent") return `attribute_not_exists(${name})`;
    const comparison = `${name} ${test.is} ${this.#value(test.value)}`;
    return test.orAbsent === true ? `(attribute_not_exists(${name}) OR ${comparison})` : comparison;
  }

  /** Compiles changes of sets, without empty ones: DynamoDB takes none, and they change nothing. */
  #members(sets: Change["addToSet"]): string[] {
    return Object.entries(sets ?? {})
      .filter(([, members]) => members.length > 0)
      .map(([name, members]) => `${this.#name(name)} ${this.#value(new Set(members))}`);
  }

  #within(sort: string, { from, to }: SortRange): string {
    if (from === undefined && to === undefined) return "";
    const name = this.#name(sort);
    if (from === undefined) return `${name} <= ${this.#value(to as string)}`;
    if (to === undefined) return `${name} >= ${this.#value(from)}`;
    return `${name} BETWEEN ${this.#value(from)} AND ${this.#value(to)}`;
  }

  #name(attribute: string): string {
    if (PLAIN_NAMES.has(attribute)) return attribute;
    return entryOf(this.#names, attribute, () => `#n${this.#names.size}`);
  }

  #value(value: Value): string {
    if (value === 1) {
      this.#hasOne = true;
      return ONE;
    }
    this.#values.push(encodeValue(value));
    return `:v${this.#values.length - 1}`;
  }
}

function clause(keyword: string, actions: readonly string[]): string {
  return actions.length === 0 ? "" : `${keyword} ${actions.join(", ")}`;
}

function entries<V>(
  record: Readonly<Record<string, V>> | undefined,
  action: (name: string, value: V) => string,
): string[] {
  return Object.entries(record ?? {}).map(([name, value]) => action(name, value));
}
