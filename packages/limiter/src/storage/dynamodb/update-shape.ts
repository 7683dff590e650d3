/**
 * Updates of one shape differ only in their key and their values: attributes, actions and tests are
 * the same, and so are the places of the number 1. What they have in common is checked and written
 * down once.
 */

import { invariant } from "../../domain/check.ts";
import { type AttributeValue, encodeItem, encodeValue } from "../attribute-value.ts";
import { checkWrite } from "../checks.ts";
import { checkKey, type Key, keyOf, type Value } from "../item.ts";
import type { Change, Condition } from "../item-store.ts";
import { INDEXES } from "../table.ts";
import { Expressions, ONE, ONE_VALUE } from "./expression.ts";
import type { Input } from "./transport/operations.ts";
import { Prepared } from "./transport/transport.ts";

type UpdateInput = Input<"UpdateItem">;

/** Limits have few names in practice; beyond this many shapes the cache is cleared. */
const SHAPES_MAX = 1000;
const INDEX_KEYS = new Set(INDEXES.flatMap((index) => [index.partition, index.sort]));

/** Tests that an absent attribute passes too. */
const OR_ABSENT = { "=": "?=", "<": "?<", "<=": "?<=", ">": "?>", ">=": "?>=" } as const;

/** The shapes of updates of one table. */
export class UpdateShapes {
  readonly #table: string;
  readonly #fields: Partial<UpdateInput>;
  #first = new ShapeStep();
  #count = 0;

  /** Every update has the given fields besides its own. */
  constructor(table: string, fields: Partial<UpdateInput>) {
    this.#table = table;
    this.#fields = fields;
  }

  /** Throws when the update could never work. */
  prepare(key: Key, change: Change, condition: Condition = []): Prepared<"UpdateItem"> {
    const seen = new Sketch(this.#first, change, condition);
    const known = seen.last.shape;
    if (known === undefined || known.changesIndex) checkWrite({ update: key, change });
    else checkKey(key);
    const shape = known ?? this.#add(seen, change, condition);
    return new PreparedUpdate(shape, key, seen.values);
  }

  #add(seen: Sketch, change: Change, condition: Condition): UpdateShape {
    const shape = new UpdateShape(this.#table, this.#fields, change, condition);
    invariant(shape.valueCount === seen.values.length, "an update has as many values as its shape");
    seen.last.shape = shape;
    this.#count += 1;
    if (this.#count >= SHAPES_MAX) {
      this.#first = new ShapeStep();
      this.#count = 0;
    }
    return shape;
  }
}

/** A step to a shape. Shapes that begin alike share their first steps. */
class ShapeStep {
  /** The shape that ends here. */
  shape: UpdateShape | undefined;
  /** Next steps by what is done or tested, then by the name of the attribute. */
  readonly #next = new Map<string, Map<string, ShapeStep>>();

  to(kind: string, name: string): ShapeStep {
    return this.#next.get(kind)?.get(name) ?? this.#add(kind, name);
  }

  #add(kind: string, name: string): ShapeStep {
    const step = new ShapeStep();
    const ofKind = this.#next.get(kind) ?? new Map<string, ShapeStep>();
    this.#next.set(kind, ofKind.set(name, step));
    return step;
  }
}

/** Finds the shape of an update, and its values in the order in which the expressions use them. */
class Sketch {
  readonly values: Value[] = [];
  last: ShapeStep;

  constructor(first: ShapeStep, change: Change, condition: Condition) {
    this.last = first;
    this.#see("S", change.set);
    this.#see("I", change.setIfAbsent);
    for (const name of change.remove ?? []) this.#mark("R", name);
    this.#see("A", change.add);
    this.#seeMembers("U", change.addToSet);
    this.#seeMembers("D", change.deleteFromSet);
    for (const test of condition) {
      if (test.is === "exists" || test.is === "absent") {
        this.#mark(test.is, test.name);
      } else {
        this.#mark(test.orAbsent === true ? OR_ABSENT[test.is] : test.is, test.name);
        this.#value(test.value);
      }
    }
  }

  #see(kind: string, record: Readonly<Record<string, Value>> | undefined): void {
    for (const name in record) {
      this.#mark(kind, name);
      this.#value(record[name] as Value);
    }
  }

  #seeMembers(kind: string, sets: Change["addToSet"]): void {
    for (const [name, members] of Object.entries(sets ?? {})) {
      if (members.length === 0) continue;
      this.#mark(kind, name);
      this.values.push(new Set(members));
    }
  }

  #value(value: Value): void {
    if (value === 1) this.#mark("one", "");
    else this.values.push(value);
  }

  #mark(kind: string, name: string): void {
    this.last = this.last.to(kind, name);
  }
}

class UpdateShape {
  /** Whether it writes the key of an index, whose values have rules of their own. */
  readonly changesIndex: boolean;
  readonly valueCount: number;
  readonly #fields: Partial<UpdateInput>;
  readonly #head: string;
  readonly #afterKey: string;
  /** Text before each value. */
  readonly #before: readonly string[];
  readonly #hasValues: boolean;
  /** The values that are the same in all updates of the shape. */
  readonly #constants: Readonly<Record<string, AttributeValue>>;

  constructor(table: string, fields: Partial<UpdateInput>, change: Change, condition: Condition) {
    const expressions = new Expressions();
    const compiled = { ...expressions.update(change), ...expressions.condition(condition) };
    const { ExpressionAttributeNames, ExpressionAttributeValues = {} } = expressions.attributes();
    this.#constants = ONE in ExpressionAttributeValues ? ONE_VALUE : {};
    const placeholders = Object.keys(ExpressionAttributeValues).filter((name) => name !== ONE);
    this.#fields = {
      TableName: table,
      ...compiled,
      ...(ExpressionAttributeNames !== undefined && { ExpressionAttributeNames }),
      ...fields,
    };
    this.#head = `${JSON.stringify(this.#fields).slice(0, -1)},"Key":{"PK":{"S":`;
    const constants = JSON.stringify(this.#constants).slice(0, -1);
    this.#hasValues = Object.keys(ExpressionAttributeValues).length > 0;
    this.#afterKey = this.#hasValues ? `}},"ExpressionAttributeValues":${constants}` : "}}";
    this.#before = placeholders.map(
      (name, at) => `${at === 0 && constants === "{" ? "" : ","}"${name}":`,
    );
    this.valueCount = placeholders.length;
    const { set, setIfAbsent, add, addToSet } = change;
    const changed = Object.keys({ ...set, ...setIfAbsent, ...add, ...addToSet });
    this.changesIndex = changed.some((name) => INDEX_KEYS.has(name));
  }

  text(key: Key, values: readonly Value[]): string {
    let text = `${this.#head}${JSON.stringify(key.PK)}},"SK":{"S":${JSON.stringify(key.SK)}`;
    text += this.#afterKey;
    for (let at = 0; at < values.length; at += 1) {
      text += this.#before[at] + valueText(values[at] as Value);
    }
    return text + (this.#hasValues ? "}}" : "}");
  }

  input(key: Key, values: readonly Value[]): UpdateInput {
    const ExpressionAttributeValues: Record<string, AttributeValue> = { ...this.#constants };
    values.forEach((value, at) => {
      ExpressionAttributeValues[`:v${at}`] = encodeValue(value);
    });
    return {
      ...this.#fields,
      Key: encodeItem({ ...keyOf(key) }),
      ...(this.#hasValues && { ExpressionAttributeValues }),
    } as UpdateInput;
  }
}

class PreparedUpdate extends Prepared<"UpdateItem"> {
  readonly #shape: UpdateShape;
  readonly #key: Key;
  readonly #values: readonly Value[];

  constructor(shape: UpdateShape, key: Key, values: readonly Value[]) {
    super();
    this.#shape = shape;
    this.#key = key;
    this.#values = values;
  }

  input(): UpdateInput {
    return this.#shape.input(this.#key, this.#values);
  }

  text(): string {
    return this.#shape.text(this.#key, this.#values);
  }
}

/** Encodes a value. Most are whole numbers, and need no escape. */
function valueText(value: Value): string {
  if (Number.isSafeInteger(value)) return `{"N":"${value as number}"}`;
  if (typeof value === "string") return `{"S":${JSON.stringify(value)}}`;
  return JSON.stringify(encodeValue(value));
}
