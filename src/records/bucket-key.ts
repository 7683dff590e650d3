/** Reads the key of a bucket item: `{namespace}/BUCKET#{entity}#{resource}#{shard}`. */

import { BUCKET_PREFIX } from "./keys.ts";

export interface BucketName {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
}

/** `undefined` when it is not the key of a bucket; neither id nor resource contains a `#`. */
export function parseBucketKey(partition: string): BucketName | undefined {
  const slash = partition.indexOf("/");
  if (slash <= 0 || !partition.startsWith(BUCKET_PREFIX, slash + 1)) return undefined;
  const entityAt = slash + 1 + BUCKET_PREFIX.length;
  const resourceAt = partition.indexOf("#", entityAt) + 1;
  const shardAt = partition.lastIndexOf("#") + 1;
  const shard = Number(partition.slice(shardAt));
  const entityId = partition.slice(entityAt, resourceAt - 1);
  const resource = partition.slice(resourceAt, shardAt - 1);
  const complete = resourceAt > 0 && shardAt > resourceAt && entityId !== "" && resource !== "";
  if (!complete || shardAt === partition.length || !Number.isInteger(shard)) return undefined;
  return { namespaceId: partition.slice(0, slash), entityId, resource, shard };
}
