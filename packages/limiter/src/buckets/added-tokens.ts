/** Reports tokens that a reset or a top-up of this process has added to a bucket. */

import type { BucketStore } from "./bucket-store.ts";

/** Called with a bucket, and whole tokens by limit name. */
export type AddedListener = (
  bucket: { readonly entityId: string; readonly resource: string },
  tokens: ReadonlyMap<string, number>,
) => void;

const listeners = new WeakMap<BucketStore, AddedListener>();

/** Sets the only listener of a store: the queues of the calls that wait for its buckets. */
export function onAdded(buckets: BucketStore, listener: AddedListener): void {
  listeners.set(buckets, listener);
}

export function tellAdded(
  buckets: BucketStore,
  bucket: { readonly entityId: string; readonly resource: string },
  amounts: Readonly<Record<string, number>>,
): void {
  const tokens = Object.entries(amounts).filter(([, amount]) => amount > 0);
  if (tokens.length > 0) listeners.get(buckets)?.(bucket, new Map(tokens));
}
