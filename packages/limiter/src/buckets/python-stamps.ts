/**
 * The port of Python's stamps: attributes of live buckets that clients of the Python library read.
 * Only a DynamoDB table has it, because such clients can use no other store.
 *
 * The followers of records are its only callers (`bucket-followers.ts`):
 *
 * 1. After a change of limits, switches or a parent was stored, they call `apply` for its scope.
 * 2. After an entity was created with a parent, they call `relinkUnstamped`; when it returns
 *    false, they call `apply` for the entity.
 */

import type { Link } from "./leg.ts";

/** The settings that the levels stamp on a bucket. */
export interface FlagStamps {
  /** Absent: stamps of switches stay as they are. */
  readonly state?: "enabled" | "disabled" | "bypass";
  /** Absent: the stamps of the owner stay as they are. */
  readonly owner?: OwnerStamps;
  /** Whether each limit is soft; absent: the stamps of soft limits stay as they are. */
  readonly soft?: ReadonlyMap<string, boolean>;
}

/** Which parent a bucket cascades to, and the generation of its entity that says so. */
export interface OwnerStamps {
  readonly link: Link;
  readonly generation: number;
  readonly incarnation: string;
  /** Whether a policy or a move decides it, not the entity alone; Python clients need a stamp. */
  readonly isStamped: boolean;
}

/** The buckets to stamp: of an entity, of a resource, of both, or all of the namespace. */
export interface StampScope {
  readonly entityId?: string | undefined;
  readonly resource?: string | undefined;
  /** Returns what the levels say about a bucket, as it is stored now. */
  readonly stampsOf: (entityId: string, resource: string) => Promise<FlagStamps>;
  readonly onStamped: () => void;
}

export interface PythonStamps {
  /** Writes what the levels say into the live buckets of a scope. */
  apply(scope: StampScope): Promise<void>;
  /**
   * Writes the parent of an entity into its live buckets that carry no stamp of their owner.
   * Returns false when others do: only `apply` may change these.
   */
  relinkUnstamped(entityId: string, link: Link): Promise<boolean>;
}
