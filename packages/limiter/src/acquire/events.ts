/**
 * Events of a limiter. Nothing is computed without a listener.
 *
 * A limiter reports its own calls: what was acquired, rejected, degraded and restored. Splits,
 * alerts and warnings belong to buckets: all limiters of the namespace on this repository report
 * them.
 * Requests belong to the store, so all limiters on it report them, whichever namespace they are
 * for, and also those the repository makes for itself.
 */

import type { BucketWarning } from "../buckets/bucket-warning.ts";
import type { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Alert } from "../records/alerts/alert-item.ts";
import type { RecordWarning } from "../records/record-warning.ts";
import type { RepositoryInternals, RepositoryListener } from "../repository/internals.ts";
import type { StoreCall } from "../storage/item-store.ts";

/**
 * Something that happened.
 *
 * @example
 * ```ts
 * import { RateLimiter, type LimiterEvent } from 'zae-limiter';
 * const seen: LimiterEvent[] = [];
 * const limiter = await RateLimiter.open('memory:', { events: (event) => seen.push(event) });
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:10'], consume: { rpm: 1 },
 * });
 * console.log(seen.some((event) => event.type === 'acquired')); // true
 * await limiter.close();
 * ```
 */
export type LimiterEvent =
  | AcquireEvent
  /** A lease wrote amounts that were corrected after the acquire. */
  | {
      readonly type: "adjusted";
      readonly acquireId: string | undefined;
      readonly entityId: string;
      readonly resource: string;
      /** Tokens by limit name, of the entity itself. Above zero: consumed; below: returned. */
      readonly amounts: Readonly<Record<string, number>>;
    }
  /** A lease gives slots back: by a release, at its end, or because it held them for too long. */
  | {
      readonly type: "released";
      readonly acquireId: string | undefined;
      readonly entityId: string;
      readonly resource: string;
      /** Slots by limit name, of the entity itself. */
      readonly amounts: Readonly<Record<string, number>>;
    }
  /** Consumed tokens are refunded: by a rollback, or because another leg was refused or failed. */
  | {
      readonly type: "restored";
      /** `undefined` where a leg of an acquire is refunded that was not granted. */
      readonly acquireId: string | undefined;
      readonly entityId: string;
      readonly resource: string;
      /** Tokens by limit name. */
      readonly amounts: Readonly<Record<string, number>>;
      readonly reason: "rollback" | "not_granted";
    }
  /** A bucket takes more writes than one partition can, and was split. */
  | {
      readonly type: "split";
      readonly entityId: string;
      readonly resource: string;
      readonly shardCount: number;
    }
  /** A percentage of a quota or a session was used, which its limit has an alert at. */
  | { readonly type: "alert"; readonly alert: Alert }
  /**
   * One request to the store, with the capacity it used. Buckets in memory and SQLite need none:
   * there it is records alone that are asked for.
   */
  | { readonly type: "call"; readonly call: StoreCall }
  /** On the channel only: a warning, which `onWarning` or else the process also receives. */
  | { readonly type: "warning"; readonly warning: LimiterWarning };

/** Fields that all events of an acquire, or of `consume` of a lease, share. */
interface AcquireFacts {
  /** Names the acquire, also in the events of its lease; unique among processes. */
  readonly acquireId: string | undefined;
  readonly entityId: string;
  readonly resource: string;
  /** From the call to its decision. */
  readonly durationMs: number;
  /** The part of it until the last attempt began: the wait in the queue; 0 without a wait. */
  readonly waitedMs: number;
}

/** An acquire was refused, because a limit was exceeded. */
export interface RejectedEvent extends AcquireFacts {
  /** Always `rejected`. */
  readonly type: "rejected";
  /** Decided by a state that an earlier request had shown, at most a second before. */
  readonly local: boolean;
  /** Seconds until the same request can succeed; `Infinity` when it never can. */
  readonly retryAfterSeconds: number;
  /** The exceeded limit with the longest wait. */
  readonly refusedBy: {
    readonly entityId: string;
    readonly limitName: string;
    /** 0: the entity itself; 1: its parent; and so on. */
    readonly level: number;
  };
  /** All limits that were checked, with what is left. */
  readonly statuses: readonly LimitStatus[];
}

/** The outcome of an acquire, or of `consume` of a lease. */
export type AcquireEvent =
  | (AcquireFacts & {
      readonly type: "acquired";
      /** Tokens by limit name, of the entity itself. */
      readonly consumed: Readonly<Record<string, number>>;
      /** All limits that were checked, with what is left. */
      readonly statuses: readonly LimitStatus[];
    })
  | RejectedEvent
  /** The store could not answer, and the call passed uncounted. */
  | (AcquireFacts & { readonly type: "degraded"; readonly cause: unknown })
  /** The store could not answer, and the call threw. */
  | (AcquireFacts & { readonly type: "unavailable"; readonly cause: unknown });

/** A problem that no error could report, because the call itself was answered. */
export type LimiterWarning = BucketWarning | LeaseWarning | RecordWarning | StoreWarning;

/** The store was not reached since the limiter was opened; at most once a minute. */
export interface StoreWarning {
  readonly kind: "store_unreached";
  readonly cause: RateLimiterUnavailable;
}

/** A problem with what a lease holds, or with its amounts. */
export type LeaseWarning =
  | {
      readonly kind: "adjustment_failed";
      readonly entityId: string;
      readonly resource: string;
      readonly cause: unknown;
    }
  /** A lease held slots for longer than `maxHoldSeconds`, and they were given back. */
  | {
      readonly kind: "slot_overdue";
      readonly entityId: string;
      readonly resource: string;
      /** How many slots it gave back, of all limits and ancestors. */
      readonly slots: number;
    }
  | {
      /** `amount_missing`: none was given, so nothing changes. `amount_negative`: counted as 0. */
      readonly kind: "amount_missing" | "amount_negative";
      readonly entityId: string;
      readonly resource: string;
      readonly limitName: string;
      readonly operation: "adjust" | "release" | "settle";
      /** The amount as the caller passed it. */
      readonly amount: unknown;
    };

/** Listens to what happens behind the calls of a limiter; the result ends it. */
export function listen(
  { listeners, listen: listenToCalls }: RepositoryInternals,
  events: ((event: LimiterEvent) => void) | undefined,
  onWarning: ((warning: LimiterWarning) => void) | undefined,
): () => void {
  // A process may create thousands of limiters; one without listeners subscribes to nothing.
  if (events === undefined && onWarning === undefined) return () => {};
  const listener: RepositoryListener = {
    onWarning,
    onSplit: events && ((notice) => events({ type: "split", ...notice })),
    onAlert: events && ((alert) => events({ type: "alert", alert })),
  };
  listeners.add(listener);
  const leave = events && listenToCalls((call) => events({ type: "call", call }));
  return () => {
    listeners.delete(listener);
    leave?.();
  };
}
