/**
 * The error tree: one base class, a stable `code` on each class, data as readonly fields, and the
 * original error in the standard `cause`. Match with `instanceof` or by `code`; messages are for
 * people and may change. (`RateLimitExceeded` has a file of its own.)
 */

import { shorten } from "../../base/shorten.ts";
import type {
  EntityCode,
  ErrorCode,
  InfrastructureCode,
  RateLimitCode,
  ValidationCode,
} from "./error-code.ts";

/** Marks the errors of every copy of the package in a process: of both builds, and of versions. */
const MARK = Symbol.for("zae-limiter.error");
const isInstance = Function.prototype[Symbol.hasInstance];

/**
 * The root of every error this library throws on purpose.
 *
 * @example
 * ```ts
 * import { Limit, ZaeLimiterError } from 'zae-limiter';
 * try {
 *   Limit.perMinute('rpm', 0);
 * } catch (error) {
 *   if (error instanceof ZaeLimiterError) console.log(error.code); // ZAEL_VALIDATION
 * }
 * ```
 */
export class ZaeLimiterError extends Error {
  /** Stable across releases, unlike the message. */
  readonly code: ErrorCode = "ZAEL_ERROR";

  /** The name of the class. */
  override get name(): string {
    return this.constructor.name;
  }
}

/** Returns whether an error is of a class, or of the class of that name in another copy. */
function isOfClass(this: { readonly name: string }, value: unknown): boolean {
  if (isInstance.call(this, value)) return true;
  if (!(value instanceof Error && MARK in value)) return false;
  if (isInstance.call(ZaeLimiterError, value)) return false;
  for (let at: unknown = value; at !== null; at = Object.getPrototypeOf(at)) {
    if ((at as Error).constructor.name === this.name) return true;
  }
  return false;
}

Object.defineProperty(ZaeLimiterError.prototype, MARK, { value: true });
// Not declared as a method, because the types of `instanceof` would follow it.
Object.defineProperty(ZaeLimiterError, Symbol.hasInstance, { value: isOfClass });

/** A call was refused because of its limits, or a lease is over. */
export class RateLimitError extends ZaeLimiterError {
  override readonly code: RateLimitCode = "ZAEL_RATE_LIMIT";
}

/** The lease was already committed or rolled back. */
export class LeaseExpiredError extends RateLimitError {
  override readonly code = "ZAEL_LEASE_EXPIRED";

  constructor() {
    super("The lease is not active any more: it was already committed or rolled back");
  }
}

/** The level at which a resource was switched off. */
export type DisabledLevel = "entity" | "entity_default" | "resource";

/**
 * The resource is switched off for the entity. Waiting does not help, and `onUnavailable` does not
 * apply.
 *
 * @example
 * ```ts
 * import { ResourceDisabled } from 'zae-limiter';
 * const error = new ResourceDisabled('key-1', 'gpt-4', 'resource');
 * console.log(error.code, error.level); // ZAEL_RESOURCE_DISABLED resource
 * ```
 */
export class ResourceDisabled extends RateLimitError {
  override readonly code = "ZAEL_RESOURCE_DISABLED";

  constructor(
    /** The entity that is switched off: the one that asked, or an ancestor. */
    readonly entityId: string,
    /** The resource that is switched off. */
    readonly resource: string,
    /** The level at which it was switched off. */
    readonly level: DisabledLevel,
  ) {
    super(`The resource "${resource}" is switched off for "${entityId}" (${LEVEL_TEXTS[level]})`);
  }
}

const LEVEL_TEXTS: Readonly<Record<DisabledLevel, string>> = {
  entity: "for this entity and resource",
  entity_default: "for all resources of the entity",
  resource: "for the whole resource",
};

/** The store, the table or the stack is missing, failed, or refused the request. */
export class InfrastructureError extends ZaeLimiterError {
  override readonly code: InfrastructureCode = "ZAEL_INFRASTRUCTURE";
}

/** Why a store could not answer. */
export type UnavailableReason = "throttled" | "timeout" | "network" | "server";

/**
 * The infrastructure failed: network, timeout, throttling or a server error. Bad input, missing
 * permissions and missing tables are other errors.
 *
 * @example
 * ```ts
 * import { RateLimiterUnavailable } from 'zae-limiter';
 * const error = new RateLimiterUnavailable('the table is throttled', { reason: 'throttled' });
 * console.log(error.code, error.reason); // ZAEL_UNAVAILABLE throttled
 * ```
 */
export class RateLimiterUnavailable extends InfrastructureError {
  override readonly code = "ZAEL_UNAVAILABLE";
  /** The kind of failure, where the store reported it. */
  readonly reason: UnavailableReason | undefined;
  /** True when it is known that nothing was written; false when a write may have happened. */
  readonly nothingWritten: boolean;
  /** True when only the key range of one item was throttled, not the table or the account. */
  readonly keyRange: boolean;
  /** The table, where it is known. */
  readonly stackName: string | undefined;
  /** The entity of the acquire, where there was one. */
  readonly entityId: string | undefined;
  /** The resource of the acquire, where there was one. */
  readonly resource: string | undefined;

  constructor(
    message: string,
    details: {
      cause?: unknown;
      reason?: UnavailableReason;
      nothingWritten?: boolean;
      keyRange?: boolean;
      stackName?: string;
      entityId?: string;
      resource?: string;
    } = {},
  ) {
    const context = [
      details.stackName === undefined ? "" : `stack=${details.stackName}`,
      details.entityId === undefined ? "" : `entity=${details.entityId}`,
      details.resource === undefined ? "" : `resource=${details.resource}`,
    ].filter((part) => part !== "");
    super(context.length === 0 ? message : `${message} [${context.join(", ")}]`, causeOf(details));
    this.reason = details.reason;
    this.nothingWritten = details.nothingWritten ?? false;
    this.keyRange = details.keyRange ?? false;
    this.stackName = details.stackName;
    this.entityId = details.entityId;
    this.resource = details.resource;
  }
}

/** One event of a stack operation that led to its failure. */
export interface StackFailureEvent {
  /** The logical id of the resource in the template. */
  readonly resource: string;
  /** The status that CloudFormation reported, such as `CREATE_FAILED`. */
  readonly status: string;
  /** The reason that CloudFormation gave. */
  readonly reason?: string;
}

/** A stack could not be created, changed or deleted. */
export class StackOperationError extends InfrastructureError {
  override readonly code = "ZAEL_STACK_OPERATION";

  constructor(
    readonly stackName: string,
    /** Why the operation failed. */
    readonly reason: string,
    /** The events that led to the failure, the oldest first. */
    readonly events: readonly StackFailureEvent[] = [],
    options?: ErrorOptions,
  ) {
    super(`Stack "${stackName}": ${reason}`, options);
  }
}

/** A stack of that name is already there. */
export class StackAlreadyExistsError extends InfrastructureError {
  override readonly code = "ZAEL_STACK_EXISTS";

  constructor(readonly stackName: string) {
    super(`Stack "${stackName}" already exists`);
  }
}

/** The table or stack is not there. Opening never creates it. */
export class InfrastructureNotFoundError extends InfrastructureError {
  override readonly code = "ZAEL_INFRASTRUCTURE_NOT_FOUND";

  constructor(
    /** The stack or table that was not found. */
    readonly stackName: string,
    options: ErrorOptions & {
      /** The sentence about it, where it is not a table on DynamoDB. */
      readonly message?: string;
    } = {},
  ) {
    super(
      options.message ??
        `There is no table "${stackName}" here. Create it with: zae-limiter stack deploy --name ` +
          `${stackName} (or Repository.createTable for a bare one)`,
      causeOf(options),
    );
  }
}

/** The namespace is not registered, or was deleted. */
export class NamespaceNotFoundError extends InfrastructureError {
  override readonly code = "ZAEL_NAMESPACE_NOT_FOUND";

  constructor(
    /** The name that is not registered. */
    readonly namespaceName: string,
  ) {
    super(
      `There is no namespace "${namespaceName}". ` +
        `Register it with repo.namespaces.register(${JSON.stringify(namespaceName)})`,
    );
  }
}

/** The namespace is in a state that does not allow the operation. */
export class NamespaceStateError extends InfrastructureError {
  override readonly code = "ZAEL_NAMESPACE_STATE";
  /** The namespace, by its name or id. */
  readonly namespaceName: string;
  readonly state: string;

  constructor(message: string, details: { namespaceName?: string; state?: string } = {}) {
    super(message);
    this.namespaceName = details.namespaceName ?? "";
    this.state = details.state ?? "";
  }
}

/**
 * A stored record is invalid: it was damaged, or written by something other than this library or
 * the Python one. Repeating does not help; the record has to be corrected or deleted.
 *
 * @example
 * ```ts
 * import { DamagedRecordError } from 'zae-limiter';
 * const key = 'namespace/BUCKET#key-1#gpt-4#0';
 * const error = new DamagedRecordError(key, 'shard_count', 'must be at most 64, got 1000');
 * console.log(error.code, error.attribute); // ZAEL_DAMAGED_RECORD shard_count
 * ```
 */
export class DamagedRecordError extends InfrastructureError {
  override readonly code = "ZAEL_DAMAGED_RECORD";

  constructor(
    /** Key of the stored record. */
    readonly key: string,
    /** The invalid attribute, or what else is wrong. */
    readonly attribute: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(
      `The record at ${shorten(key)} is damaged: ${attribute} ${reason}. ` +
        "Correct it, or delete its entity",
      options,
    );
  }
}

/** Something is wrong with an entity. */
export class EntityError extends ZaeLimiterError {
  override readonly code: EntityCode = "ZAEL_ENTITY";
}

/** The entity was never created, or was deleted. */
export class EntityNotFoundError extends EntityError {
  override readonly code = "ZAEL_ENTITY_NOT_FOUND";

  constructor(
    /** The id that has no record. */
    readonly entityId: string,
    message = `"${entityId}" not found`,
  ) {
    super(message);
  }
}

/** An entity with that id is already there. */
export class EntityExistsError extends EntityError {
  override readonly code = "ZAEL_ENTITY_EXISTS";

  constructor(
    /** The id that is taken. */
    readonly entityId: string,
  ) {
    super(`Entity "${entityId}" already exists`);
  }
}

/**
 * An argument is not what it must be. Thrown before anything is written.
 *
 * @example
 * ```ts
 * import { Limit, ValidationError } from 'zae-limiter';
 * try {
 *   Limit.parse('rpm:many');
 * } catch (error) {
 *   if (error instanceof ValidationError) console.log(error.field, error.value); // limit rpm:many
 * }
 * ```
 */
export class ValidationError extends ZaeLimiterError {
  override readonly code: ValidationCode = "ZAEL_VALIDATION";
  /** The value that came, as text, cut after 50 characters. */
  readonly value: string;

  constructor(
    /** The argument or option that is wrong, by its name in JavaScript. */
    readonly field: string,
    value: unknown,
    /** The expectation, as a sentence. */
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`Invalid ${javascriptName(field)}: ${reason}`, options);
    this.value = shorten(describe(value));
  }
}

/** An entity id, parent id or principal breaks its rules. */
export class InvalidIdentifierError extends ValidationError {
  override readonly code = "ZAEL_INVALID_IDENTIFIER";
}

/** A limit or resource name breaks its rules. */
export class InvalidNameError extends ValidationError {
  override readonly code = "ZAEL_INVALID_NAME";
}

/** Fields are named as in records; messages name the option as JavaScript code writes it. */
function javascriptName(field: string): string {
  if (!/^[a-z]+(?:_[a-z]+)+$/.test(field)) return field;
  return field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function causeOf(details: { cause?: unknown }): ErrorOptions | undefined {
  return details.cause === undefined ? undefined : { cause: details.cause };
}

function describe(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  }
  return String(value);
}
