/** The resources of a namespace that were used, for usage of everything together. */

import { USAGE_PREFIX } from "@zae-limiter/limiter/records/keys.ts";
import { queryRecords } from "@zae-limiter/limiter/records/query-records.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Survey } from "./survey.ts";

/** Names of resources, and whether these are all. */
export interface UsedResources {
  readonly names: ReadonlySet<string>;
  readonly complete: boolean;
}

/** No index has the resources of snapshots alone, so this many keys are read at most. */
const KEYS_MAX = 20_000;

/**
 * Returns the resources that have limits, buckets or snapshots. A resource that has only snapshots
 * is found by walking over the keys of the namespace.
 */
export async function usedResources(
  repository: Repository,
  survey: Survey,
): Promise<UsedResources> {
  const [stored, live, counted] = await Promise.all([
    repository.limits.listResources(),
    survey.resources(),
    countedResources(repository),
  ]);
  return {
    names: new Set([...stored, ...live.names, ...counted.names]),
    complete: live.complete && counted.complete,
  };
}

async function countedResources({ [INTERNALS]: { records } }: Repository): Promise<UsedResources> {
  const names = new Set<string>();
  const { namespaceId } = records;
  const keys = { index: "GSI4", partition: namespaceId, limit: KEYS_MAX } as const;
  let read = 0;
  for await (const { SK } of queryRecords(records, keys)) {
    read += 1;
    if (!SK.startsWith(USAGE_PREFIX)) continue;
    names.add(SK.slice(USAGE_PREFIX.length, SK.indexOf("#", USAGE_PREFIX.length)));
  }
  return { names, complete: read < KEYS_MAX };
}
