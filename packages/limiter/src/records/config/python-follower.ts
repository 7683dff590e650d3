/**
 * The port from records to clients of the Python library, which follow the bucket and not what is
 * stored for its levels. Only a DynamoDB table has it: such clients can use no other store.
 *
 * The protocol of a change of limits, switches or parents:
 *
 * 1. The record calls `claim` before it stores a feature that older clients do not know.
 * 2. It writes its transaction, and lets this process's cache follow.
 * 3. It calls the stamp of the change, which visits the live buckets and calls `onStamped` after
 *    each write. When that fails, repeating the change stamps the rest (`sweep`).
 */

import type { GatedFeature } from "./feature-gate.ts";

/** A resource, an entity, or both; with neither, the whole namespace. */
export interface StampedPlace {
  readonly entityId?: string | undefined;
  readonly resource?: string | undefined;
}

export interface PythonFollower {
  /** Refuses a feature that the Lambda of the table does not know; else asks clients to know it. */
  claim(feature: GatedFeature): Promise<void>;
  /** Throws with the reason where the Lambda of the Python library serves the table. */
  refuse(reason: string): Promise<void>;
  /** Stamps what switches and cascade settings say about the buckets of a place. */
  stampFlags(place: StampedPlace, onStamped: () => void): Promise<void>;
  /** Stamps which limits of the buckets of a place are soft. */
  stampSoft(place: StampedPlace, onStamped: () => void): Promise<void>;
  /** Stamps the parent into the buckets of an entity that was moved. */
  stampOwner(entityId: string, onStamped: () => void): Promise<void>;
}
