/** Brings what is stored for levels to live buckets. */

import { DEFAULT_RESOURCE } from "../domain/names.ts";
import type { ConfigResolver, Resolution } from "../records/config/config-resolver.ts";
import type { LimitFollower, SoftPlace } from "../records/config/limits.ts";
import type { EntityBuckets } from "../records/entities/entities.ts";
import { entityKey } from "../records/keys.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { FlagStamps, OwnerStamps } from "./bucket-admin.ts";
import type { BucketStore } from "./bucket-store.ts";
import { effectiveLink, linkInRecord, ownerStamps } from "./link.ts";

/** Limits of an entity reach its live buckets at once, whatever level applies to them now. */
async function followLimits(
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

/** Returns the follower that stamps live buckets with what the levels of their place say. */
export function limitFollower(
  context: RecordContext,
  buckets: BucketStore,
  resolver: ConfigResolver,
): LimitFollower {
  const stamp = stamper(buckets, resolver);
  const flags = async (id: string, resolution: Resolution) => ({
    state: stateOf(resolution),
    owner: await ownerOf(context, id, resolution.cascade),
  });
  const soft = async (_: string, { limits }: Resolution) => ({
    soft: new Map(limits?.limits.map((limit) => [limit.name, limit.soft])),
  });
  return {
    entityLimitsChanged: (id, resource) => followLimits(buckets, resolver, id, resource),
    stampFlags: (level, onStamped) => stamp(level, flags, onStamped),
    stampSoft: (place, onStamped) => stamp(place, soft, onStamped),
  };
}

/** Returns the follower that brings changes of entities to their live buckets. */
export function entityBuckets(
  context: RecordContext,
  buckets: BucketStore,
  resolver: ConfigResolver,
): EntityBuckets {
  const owner = async (id: string, { cascade }: Resolution) => ({
    owner: await ownerOf(context, id, cascade),
  });
  const stamp = stamper(buckets, resolver);
  return {
    relink: async (id, link) => {
      if (!(await buckets.relink(id, link))) await stamp({ entityId: id }, owner, () => {});
    },
    moved: async (id, link, onStamped) => {
      const isStamped = await stamp({ entityId: id }, owner, onStamped);
      if (!isStamped) await buckets.relink(id, link);
      return isStamped;
    },
    deleteEntity: (id) => buckets.deleteEntity(id),
  };
}

/** Returns a function that stamps the live buckets of a place with what the levels say. */
function stamper(buckets: BucketStore, resolver: ConfigResolver) {
  return (
    { entityId, resource: name }: SoftPlace,
    stampsOf: (entityId: string, resolution: Resolution) => Promise<FlagStamps>,
    onStamped: () => void,
  ): Promise<boolean> => {
    const resource = name === DEFAULT_RESOURCE ? undefined : name;
    const stamps = async (id: string, of: string) => stampsOf(id, await resolver.current(id, of));
    return buckets.stamp({ entityId, resource, stampsOf: stamps, onStamped });
  };
}

function stateOf({ disabledAt, bypassed }: Resolution): "enabled" | "disabled" | "bypass" {
  if (disabledAt !== undefined) return "disabled";
  return bypassed ? "bypass" : "enabled";
}

/** The parent that the record of an entity has, and whether its buckets cascade to it. */
async function ownerOf(
  { store, namespaceId }: RecordContext,
  entityId: string,
  policy: boolean | undefined,
): Promise<OwnerStamps> {
  const record = await store.get(entityKey(namespaceId, entityId), { consistent: true });
  const { pgen, pinc } = ownerStamps(record);
  return {
    link: effectiveLink(linkInRecord(record), policy),
    generation: Number(pgen),
    incarnation: String(pinc),
    isStamped: policy !== undefined || (record !== undefined && record.pgen !== undefined),
  };
}
