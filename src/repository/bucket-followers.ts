/** Brings what is stored for levels to live buckets. */

import type { OwnerStamps } from "../buckets/bucket-admin.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import { effectiveLink, linkInRecord, ownerStamps } from "../buckets/recorded-link.ts";
import { DEFAULT_RESOURCE } from "../domain/names.ts";
import type { ConfigLevel } from "../records/config-level.ts";
import type { ConfigResolver, Resolution } from "../records/config-resolver.ts";
import type { EntityBuckets } from "../records/entities.ts";
import { entityKey } from "../records/keys.ts";
import type { SoftPlace } from "../records/limits.ts";
import type { RecordContext } from "../records/record-context.ts";

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
export function stampFlags(
  context: RecordContext,
  buckets: BucketStore,
  resolver: ConfigResolver,
  { entityId, resource }: Pick<ConfigLevel, "entityId" | "resource">,
  onStamped: () => void,
): Promise<boolean> {
  return buckets.stamp({
    entityId,
    resource: resource === DEFAULT_RESOURCE ? undefined : resource,
    stampsOf: async (id, name) => {
      const resolution = await resolver.current(id, name);
      const owner = await ownerOf(context, id, resolution.cascade);
      return { state: stateOf(resolution), owner };
    },
    onStamped,
  });
}

/** Stamps the live buckets that a level may decide about with which of their limits are soft. */
export function stampSoft(
  buckets: BucketStore,
  resolver: ConfigResolver,
  { entityId, resource }: SoftPlace,
  onStamped: () => void,
): Promise<boolean> {
  return buckets.stamp({
    entityId,
    resource: resource === DEFAULT_RESOURCE ? undefined : resource,
    stampsOf: async (id, name) => {
      const { limits } = await resolver.current(id, name);
      return { soft: new Map(limits?.limits.map((limit) => [limit.name, limit.soft])) };
    },
    onStamped,
  });
}

/** What entities do to their live buckets. */
export function entityBuckets(
  context: RecordContext,
  buckets: BucketStore,
  resolver: ConfigResolver,
): EntityBuckets {
  const stamp = async (entityId: string, onStamped: () => void) =>
    buckets.stamp({
      entityId,
      stampsOf: async (id, name) => {
        const { cascade } = await resolver.current(id, name);
        return { owner: await ownerOf(context, id, cascade) };
      },
      onStamped,
    });
  return {
    relink: async (id, link) => {
      if (!(await buckets.relink(id, link))) await stamp(id, () => {});
    },
    moved: async (id, link, onStamped) => {
      const isStamped = await stamp(id, onStamped);
      if (!isStamped) await buckets.relink(id, link);
      return isStamped;
    },
    deleteEntity: (id) => buckets.deleteEntity(id),
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
