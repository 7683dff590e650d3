/** Brings what is stored for levels to live buckets. */

import type { BucketStore } from "../buckets/bucket-store.ts";
import { DEFAULT_RESOURCE } from "../domain/names.ts";
import type { ConfigResolver } from "../records/config-resolver.ts";
import type { FlagLevel } from "../records/level-flags.ts";

/** Limits of an entity reach its live buckets at once, whatever level applies to them now. */
export async function followLimits(
  buckets: BucketStore,
  resolver: ConfigResolver,
  entityId: string,
  resource: string,
): Promise<void> {
  const scope = resource === DEFAULT_RESOURCE ? undefined : resource;
  const states = await buckets.list(entityId, scope);
  for (const name of new Set(states.map((state) => state.resource))) {
    const resolved = await resolver.resolve(entityId, name);
    if (resolved !== undefined) await buckets.reconfigure(entityId, name, resolved);
  }
}

/** Stamps the live buckets of a place with what the levels say about each of them. */
export async function stampFlags(
  buckets: BucketStore,
  resolver: ConfigResolver,
  { entityId, resource }: FlagLevel,
  onStamped: () => void,
): Promise<void> {
  await buckets.stamp?.({
    entityId,
    resource: resource === DEFAULT_RESOURCE ? undefined : resource,
    stampsOf: async (id, name) => {
      const { disabledAt, bypassed } = await resolver.current(id, name);
      if (disabledAt !== undefined) return { state: "disabled" };
      return { state: bypassed ? "bypass" : "enabled" };
    },
    onStamped,
  });
}
