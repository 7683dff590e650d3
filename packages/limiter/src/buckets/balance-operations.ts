/** Resets and top-ups: an operator changes the balances of one bucket, once per key. */

import { randomBytes } from "../base/random.ts";
import { hasSlots } from "../core/bucket.ts";
import { checkFields, checkInteger, show, TOKENS_MAX } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { refuseUnsupported } from "../domain/errors/unsupported-limit.ts";
import { checkEntityId, checkLimitName, checkResource } from "../domain/names.ts";
import { type AuditLog, checkAuditor } from "../records/audit.ts";
import type { ConfigResolver } from "../records/config/config-resolver.ts";
import { entityKey } from "../records/keys.ts";
import { checkActive } from "../records/namespaces/namespace-state.ts";
import {
  checkIdempotencyKey,
  encodeOperation,
  incarnationOf,
  madeBefore,
  type Operation,
  type OperationKind,
  type OperationResult,
  operationKey,
} from "../records/operation-record.ts";
import type { RecordContext } from "../records/record-context.ts";
import { tellAdded } from "./added-tokens.ts";
import type { BucketStore } from "./bucket-store.ts";

/** The bucket that is changed, and by which principal. */
export interface OperationTarget {
  /** The entity whose bucket is changed. */
  readonly entityId: string;
  /** The resource whose bucket is changed. */
  readonly resource: string;
  /** One operation per key within three days; 1 to 64 letters, digits and `._:-`. */
  readonly idempotencyKey?: string;
  /** The person or program that makes the change, for the audit log. */
  readonly principal?: string;
}

/** The bucket and limits to fill up. */
export interface ResetRequest extends OperationTarget {
  /** The limits to fill; all of the bucket when absent. */
  readonly limits?: readonly string[];
}

/** The bucket, and the tokens to add to it. */
export interface TopUpRequest extends OperationTarget {
  /** Whole tokens per limit; what a limit has no room for is not added. */
  readonly amounts: Readonly<Record<string, number>>;
}

/**
 * The result of a reset or a top-up.
 *
 * @example
 * ```ts
 * import { RateLimiter, type BucketOperationResult } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const { buckets, limits } = limiter.repository;
 * await limits.setResource('gpt-4', ['tpd:100/day']);
 * const bucket = { entityId: 'key-1', resource: 'gpt-4' };
 * await limiter.acquire({ ...bucket, consume: { tpd: 80 } });
 * const order = { ...bucket, amounts: { tpd: 50 }, idempotencyKey: 'order-1' };
 * const added: BucketOperationResult = await buckets.topUp(order);
 * await buckets.topUp(order); // made once
 * console.log(added.amounts['tpd'], (await limiter.available(bucket))['tpd']); // 50 70
 * console.log((await buckets.reset(bucket)).amounts['tpd']); // 30
 * await limiter.close();
 * ```
 */
export interface BucketOperationResult extends OperationResult {
  /** The entity whose bucket was changed. */
  readonly entityId: string;
  /** The resource whose bucket was changed. */
  readonly resource: string;
}

const TARGET_FIELDS = ["entityId", "resource", "idempotencyKey", "principal"] as const;
const WRITER_BYTES = 12;

const ACTIONS = { reset: "bucket_reset", top_up: "bucket_topped_up" } as const;

export class BalanceOperations {
  readonly #context: RecordContext;
  readonly #audit: AuditLog;
  readonly #resolver: ConfigResolver;
  readonly #buckets: BucketStore;

  constructor(
    context: RecordContext,
    audit: AuditLog,
    resolver: ConfigResolver,
    buckets: BucketStore,
  ) {
    this.#context = context;
    this.#audit = audit;
    this.#resolver = resolver;
    this.#buckets = buckets;
  }

  async reset(request: ResetRequest): Promise<BucketOperationResult> {
    checkFields("request", request, [...TARGET_FIELDS, "limits"]);
    const { limits } = request;
    if (limits !== undefined && (!Array.isArray(limits) || limits.length === 0)) {
      const reason = `expected names of limits, or nothing for all, got ${show(limits)}`;
      throw new ValidationError("limits", limits, reason);
    }
    const names = limits?.map((name) => checkLimitName(name));
    const additions = names && new Map(names.map((name) => [name, Number.POSITIVE_INFINITY]));
    return this.#operate("reset", request, additions);
  }

  async topUp(request: TopUpRequest): Promise<BucketOperationResult> {
    checkFields("request", request, [...TARGET_FIELDS, "amounts"]);
    const { amounts } = request;
    if (typeof amounts !== "object" || amounts === null) {
      const reason = `expected limits and whole tokens, like { tpm: 100 }, got ${show(amounts)}`;
      throw new ValidationError("amounts", amounts, reason);
    }
    checkFields("amounts", amounts, Object.keys(amounts));
    const additions = new Map(
      Object.entries(amounts).map(([name, amount]) => [
        checkLimitName(name),
        checkInteger(`amounts.${name}`, amount, 1, TOKENS_MAX) * 1000,
      ]),
    );
    if (additions.size === 0) {
      throw new ValidationError("amounts", amounts, "expected at least one limit and its amount");
    }
    return this.#operate("top_up", request, additions);
  }

  /** Adds `additions` to the bucket, or fills all its limits without them. */
  async #operate(
    kind: OperationKind,
    target: OperationTarget,
    additions: ReadonlyMap<string, number> | undefined,
  ): Promise<BucketOperationResult> {
    const { idempotencyKey } = target;
    const entityId = checkEntityId(target.entityId);
    const resource = checkResource(target.resource);
    const principal = checkAuditor(target.principal);
    const key =
      idempotencyKey === undefined ? this.#audit.newId() : checkIdempotencyKey(idempotencyKey);
    await checkActive(this.#context);
    const days = await this.#resolver.auditRetentionDays();
    const operation = { entityId, resource, kind, key };
    const unknown = additions && (await this.#unknownName(entityId, resource, additions));
    if (unknown !== undefined) {
      // A repetition is answered by what was done, also when the limit is gone since.
      const before = await this.#madeBefore(operation);
      if (before === undefined) throw unknown;
      return { entityId, resource, ...before };
    }
    // Ids are made before the step, which may run again and must name the same items each time.
    const writer = this.#newName(WRITER_BYTES);
    const eventId = this.#audit.newId();
    const result = await this.#buckets.operate({
      ...operation,
      additionOf: (name) =>
        additions === undefined ? Number.POSITIVE_INFINITY : additions.get(name),
      recordsOf: (done, { incarnation, nowMs }) => {
        const made = { incarnation, nowMs, writer };
        const { shards, amounts } = done;
        const event = this.#audit.entry(
          {
            action: ACTIONS[kind],
            subject: entityId,
            principal,
            resource,
            details: { shards, amounts: { ...amounts } },
          },
          days,
          eventId,
        );
        return [encodeOperation(this.#context.namespaceId, operation, done, made), event.put];
      },
    });
    // Calls of this process that wait for the bucket ask again.
    tellAdded(this.#buckets, { entityId, resource }, atMostAdded(result.amounts, additions));
    return { entityId, resource, ...result };
  }

  /** Returns the result of an operation that was made before, by its key. */
  async #madeBefore(operation: Operation): Promise<OperationResult | undefined> {
    const { store, namespaceId, clock } = this.#context;
    const keys = [operationKey(namespaceId, operation), entityKey(namespaceId, operation.entityId)];
    const [record, entity] = await store.getMany(keys, { consistent: true });
    return madeBefore(record, operation, incarnationOf(entity), clock());
  }

  /**
   * Returns the error of a name that is no limit of the entity, by what is stored or by the bucket
   * itself.
   */
  async #unknownName(
    entityId: string,
    resource: string,
    additions: ReadonlyMap<string, number>,
  ): Promise<ValidationError | undefined> {
    const resolved = (await this.#resolver.current(entityId, resource)).limits;
    const names = [...additions.keys()];
    refuseUnsupported(names, resolved?.unsupported ?? [], `"${entityId}" for "${resource}"`);
    const slots = resolved?.limits.find(
      (limit) => hasSlots(limit.rate) && additions.has(limit.name),
    );
    if (slots !== undefined) return slotsError(slots.name);
    const known = new Set(resolved?.limits.map(({ name }) => name));
    if (names.every((name) => known.has(name))) return undefined;
    for (const { limitName } of await this.#buckets.list(entityId, resource)) known.add(limitName);
    const unknown = names.find((name) => !known.has(name));
    if (unknown === undefined) return undefined;
    const has = known.size === 0 ? "it has none" : `it has ${[...known].sort().join(", ")}`;
    const reason = `"${entityId}" has no limit "${unknown}" for "${resource}"; ${has}`;
    return new ValidationError("limits", unknown, reason);
  }

  #newName(bytes: number): string {
    return Buffer.from(randomBytes(this.#context.random, bytes)).toString("hex");
  }
}

function slotsError(name: string): ValidationError {
  const reason = `"${name}" are slots, which come back when the calls that hold them end`;
  return new ValidationError("limits", name, reason);
}

/**
 * Returns the most that was added, in tokens. Amounts are rounded down: an operation that has
 * filled the bucket may have added a part of a token more.
 */
function atMostAdded(
  amounts: OperationResult["amounts"],
  additions: ReadonlyMap<string, number> | undefined,
): Record<string, number> {
  const isFilled = (name: string, amount: number) =>
    amount * 1000 < (additions?.get(name) ?? Number.POSITIVE_INFINITY);
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [
      name,
      isFilled(name, amount) ? amount + 1 : amount,
    ]),
  );
}
