/** JSON data from users: checked, copied and frozen, so that callers cannot change it later. */

import { isPlainObject, show } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";

/** JSON data, as it is kept in metadata and audit details. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** DynamoDB nests at most 32 levels; the item itself and the audit details take some of them. */
const DEPTH_MAX = 28;

/** Returns a frozen copy of a plain object; throws a `ValidationError` where it is not JSON. */
export function checkJsonObject(
  field: string,
  value: unknown,
): Readonly<Record<string, JsonValue>> {
  if (!isPlainObject(value)) {
    throw new ValidationError(field, value, `expected a plain object, got ${show(value)}`);
  }
  return copy(field, value, field, 0) as Readonly<Record<string, JsonValue>>;
}

function copy(field: string, value: unknown, path: string, depth: number): JsonValue {
  if (depth > DEPTH_MAX) {
    throw new ValidationError(field, path, `${path} is nested deeper than ${DEPTH_MAX} levels`);
  }
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && isStorable(value)) return value;
  if (Array.isArray(value)) {
    // `Array.from` also visits the holes of a sparse array, which are not JSON.
    return Object.freeze(
      Array.from(value, (part: unknown, index) =>
        copy(field, part, `${path}[${index}]`, depth + 1),
      ),
    );
  }
  if (isPlainObject(value)) {
    // `fromEntries` defines its properties, so that a member named `__proto__` is only a name.
    return Object.freeze(
      Object.fromEntries(
        Object.entries(value)
          .filter(([, part]) => part !== undefined)
          .map(([name, part]) => [
            checkMember(field, name, path),
            copy(field, part, `${path}.${name}`, depth + 1),
          ]),
      ),
    );
  }
  throw new ValidationError(field, value, `expected JSON at ${path}, got ${show(value)}`);
}

/** Returns whether DynamoDB keeps a number: from 1e-130 to below 1e126. All stores do the same. */
function isStorable(value: number): boolean {
  const size = Math.abs(value);
  return size === 0 || (size >= 1e-130 && size < 1e126);
}

function checkMember(field: string, name: string, path: string): string {
  if (name !== "") return name;
  throw new ValidationError(field, path, `expected a name for each member of ${path}, got ""`);
}
