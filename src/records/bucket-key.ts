/** Reads the key of a bucket item: `{namespace}/BUCKET#{entity}#{resource}#{shard}`. */

import { SHARDS_MAX } from "../core/shares.ts";
import { BUCKET_PREFIX } from "./keys.ts";

export interface BucketName {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
}

const DIGIT_ZERO = 48;

/** Returns the shard number from `at` to the end, written without a sign or leading zeros. */
export function parseShard(partition: string, at: number): number | undefined {
  const tens = partition.charCodeAt(at) - DIGIT_ZERO;
  if (!(tens >= 0 && tens <= 9)) return undefined;
  if (at + 1 === partition.length) return tens;
  const ones = partition.charCodeAt(at + 1) - DIGIT_ZERO;
  const isTwoDigits = at + 2 === partition.length && tens > 0 && ones >= 0 && ones <= 9;
  const shard = 10 * tens + ones;
  return isTwoDigits && shard < SHARDS_MAX ? shard : undefined;
}

/** `undefined` when it is not the key of a bucket; neither id nor resource contains a `#`. */
export function parseBucketKey(partition: string): BucketName | undefined {
  const slash = partition.indexOf("/");
  if (slash <= 0 || !partition.startsWith(BUCKET_PREFIX, slash + 1)) return undefined;
  const entityAt = slash + 1 + BUCKET_PREFIX.length;
  const resourceAt = partition.indexOf("#", entityAt) + 1;
  const shardAt = partition.lastIndexOf("#") + 1;
  const shard = parseShard(partition, shardAt);
  const entityId = partition.slice(entityAt, resourceAt - 1);
  const resource = partition.slice(resourceAt, shardAt - 1);
  const complete = resourceAt > 0 && shardAt > resourceAt && entityId !== "" && resource !== "";
  if (!complete || shard === undefined || resource.includes("#")) return undefined;
  return { namespaceId: partition.slice(0, slash), entityId, resource, shard };
}
