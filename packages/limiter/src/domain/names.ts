/**
 * The rules for ids and names, checked in a fixed order: empty, too long, `#`, reserved, pattern.
 * They are strict because names become parts of keys and attribute names.
 */

import { show } from "./check.ts";
import { InvalidIdentifierError, InvalidNameError, ValidationError } from "./errors/errors.ts";

/** The name under which an entity's limits for all resources without their own are stored. */
export const DEFAULT_RESOURCE = "_default_";

/**
 * The resource of totals: limits stored for it hold over all resources of an entity.
 *
 * @example
 * ```ts
 * import { RateLimiter, TOTAL } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:', { totals: true });
 * await limiter.repository.limits.setEntity('team-a', ['rpm:2'], { resource: TOTAL });
 * const call = { entityId: 'team-a', consume: { rpm: 1 } };
 * await limiter.acquire({ ...call, resource: 'gpt-4o' });
 * await limiter.acquire({ ...call, resource: 'claude-sonnet-4-5' });
 * const third = await limiter.tryAcquire({ ...call, resource: 'llama3.1:8b' });
 * console.log(third.granted); // false
 * await limiter.close();
 * ```
 */
export const TOTAL = "@all";

/** The limit that meters writes to one item. Users may not take the name. */
export const RESERVED_LIMIT = "wcu";

/** The namespace that holds the version record and the registry of namespaces. */
export const RESERVED_NAMESPACE = "_";

/** Entities whose ids begin so are keys of a gateway; lists for people leave them out. */
export const GATEWAY_KEY_PREFIX = "gateway-key:";

/** Entities whose ids begin so are cost centres: they count what other entities consume. */
export const TAG_PREFIX = "tag:";

const ID_LENGTH_MAX = 256;
const NAME_LENGTH_MAX = 64;
/** Model ids are long: ARNs of Bedrock have more than 100 characters. */
const RESOURCE_LENGTH_MAX = 256;
/** DynamoDB: the stack's name is the name of its table. */
const STACK_LENGTH_MIN = 3;
const STACK_LENGTH_MAX = 55;
/** With four-byte characters and the prefix of its record it fits a sort key of 1024 bytes. */
const NAMESPACE_LENGTH_MAX = 250;

const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.\-:@]*$/;
const LIMIT_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]*$/;
/** Fits names of models: `llama3.1:8b`, `@cf/meta/llama`, `01-ai/yi-34b`, an ARN. */
const RESOURCE_PATTERN = /^[A-Za-z0-9@][A-Za-z0-9_.\-/:@]*$/;
const STACK_PATTERN = /^[A-Za-z][A-Za-z0-9-]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it has to find control characters.
const CONTROL_PATTERN = /[\u0000-\u001f\u007f]/;
/** Half of a surrogate pair. Stores write UTF-8, where all of them become the same character. */
const LONE_SURROGATE_PATTERN = /\p{Surrogate}/u;

/** Returns whether an entity is a key of a gateway, and not one that calls count for. */
export function isGatewayKey(entityId: string): boolean {
  return entityId.startsWith(GATEWAY_KEY_PREFIX);
}

/** Returns whether an entity is a cost centre, whose use that of other entities includes. */
export function isTag(entityId: string): boolean {
  return entityId.startsWith(TAG_PREFIX);
}

export function checkEntityId(value: unknown): string {
  return checkId("entity_id", value);
}

export function checkParentId(value: unknown): string {
  return checkId("parent_id", value);
}

/** Checks a principal of the audit log: an id, or any ARN. */
export function checkPrincipal(value: unknown): string {
  if (typeof value === "string" && value.startsWith("arn:")) return value;
  return checkId("principal", value);
}

export function checkLimitName(value: unknown): string {
  const text = checkText(InvalidNameError, "name", value, NAME_LENGTH_MAX);
  if (text === RESERVED_LIMIT) {
    throw new InvalidNameError("name", text, `"${RESERVED_LIMIT}" is reserved`);
  }
  if (!LIMIT_PATTERN.test(text)) {
    throw new InvalidNameError(
      "name",
      text,
      `must start with a letter and contain only letters, digits, "_", "." and "-", got ${show(text)}`,
    );
  }
  return text;
}

/** Returns whether a limit can have that name. For names in stored records: it never throws. */
export function isLimitName(text: string): boolean {
  return text.length <= NAME_LENGTH_MAX && text !== RESERVED_LIMIT && LIMIT_PATTERN.test(text);
}

export function checkResource(value: unknown): string {
  const text = checkText(InvalidNameError, "resource", value, RESOURCE_LENGTH_MAX);
  if (!RESOURCE_PATTERN.test(text)) {
    throw new InvalidNameError(
      "resource",
      text,
      `must start with a letter, digit or "@" and contain only letters, digits, "_", ".", "-", "/", ` +
        `":" and "@", got ${show(text)}`,
    );
  }
  return text;
}

/** Checks the resource that a call consumes: the one of totals is reserved. */
export function checkCallResource(value: unknown): string {
  const text = checkResource(value);
  if (text !== TOTAL) return text;
  const reason = `"${TOTAL}" is reserved: it stands for all resources of an entity`;
  throw new InvalidNameError("resource", text, reason);
}

/** Checks the resource of an entity's stored limits, which may also be `_default_`. */
export function checkConfigResource(value: unknown): string {
  return value === DEFAULT_RESOURCE ? DEFAULT_RESOURCE : checkResource(value);
}

/** The namespace where none is named. */
export const DEFAULT_NAMESPACE = "default";

/** The stack, and the table, where none is named. */
export const DEFAULT_STACK = "zae-limiter";

/** Checks the name of a stack, which is also the name of its table. */
export function checkStackName(value: unknown): string {
  const refuse = (reason: string) => new ValidationError("name", value, reason);
  if (typeof value !== "string") throw refuse(`expected text, got ${show(value)}`);
  if (value === "") throw refuse("must not be empty");
  if (value.includes("_")) throw refuse("must not contain an underscore; use a hyphen instead");
  if (value.includes(".")) throw refuse("must not contain a period; use a hyphen instead");
  if (value.includes(" ")) throw refuse("must not contain a space; use a hyphen instead");
  if (!STACK_PATTERN.test(value)) {
    throw refuse(
      `must start with a letter and contain only letters, digits and hyphens, got ${show(value)}`,
    );
  }
  if (value.length < STACK_LENGTH_MIN) {
    throw refuse(
      `Too short: ${show(value)}; a table on DynamoDB needs at least ${STACK_LENGTH_MIN} characters`,
    );
  }
  if (value.length > STACK_LENGTH_MAX) {
    throw refuse(`Too long: ${value.length}; the ${STACK_LENGTH_MAX} character limit is AWS's`);
  }
  return value;
}

/** Checks the name of a namespace: any text without control characters, except the reserved `_`. */
export function checkNamespace(value: unknown): string {
  const refuse = (reason: string) => new ValidationError("namespace", value, reason);
  if (typeof value !== "string") throw refuse(`expected text, got ${show(value)}`);
  if (value === "") throw refuse("must not be empty");
  if (value === RESERVED_NAMESPACE) throw refuse(`"${RESERVED_NAMESPACE}" is reserved`);
  if ([...value].length > NAMESPACE_LENGTH_MAX) {
    throw refuse(`exceeds the maximum length of ${NAMESPACE_LENGTH_MAX} characters`);
  }
  if (CONTROL_PATTERN.test(value)) throw refuse("must not contain control characters");
  if (LONE_SURROGATE_PATTERN.test(value)) throw refuse("must not contain half of a surrogate pair");
  return value;
}

function checkId(field: string, value: unknown): string {
  const text = checkText(InvalidIdentifierError, field, value, ID_LENGTH_MAX);
  if (!ID_PATTERN.test(text)) {
    throw new InvalidIdentifierError(
      field,
      text,
      `must start with a letter or digit and contain only letters, digits, "_", ".", "-", ":" and "@", ` +
        `got ${show(text)}`,
    );
  }
  return text;
}

function checkText(
  Refusal: typeof InvalidIdentifierError | typeof InvalidNameError,
  field: string,
  value: unknown,
  lengthMax: number,
): string {
  if (typeof value !== "string") {
    throw new Refusal(field, value, `expected text, got ${show(value)}`);
  }
  if (value === "") throw new Refusal(field, value, "must not be empty");
  // Code units are never fewer than code points, so the exact count is taken only when it matters.
  if (value.length > lengthMax && [...value].length > lengthMax) {
    throw new Refusal(field, value, `exceeds the maximum length of ${lengthMax} characters`);
  }
  if (value.includes("#")) throw new Refusal(field, value, 'must not contain "#"');
  return value;
}
