/** Brings what is stored for levels to live buckets. */

import { DEFAULT_RESOURCE } from "../domain/names.ts";
import type { ConfigResolver, Resolution } from "../records/config/config-resolver.ts";
import { claimFeature, refuseOnPythonTable } from "../records/config/feature-gate.ts";
import type { LimitFollower } from "../records/config/limit-writer.ts";
import type { PythonFollower, StampedPlace } from "../records/config/python-follower.ts";
import type { EntityBuckets } from "../records/entities/entities.ts";
import { entityKey } from "../records/keys.ts";
import type { RecordContext } from "../records/record-context.ts";
import type { BucketStore } from "./bucket-store.ts";
import { effectiveLink, linkInRecord, ownerStamps } from "./leg.ts";
import type { FlagStamps, OwnerStamps, PythonStamps } from "./python-stamps.ts";

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

/** Returns the follower that brings limits to live buckets. */
export function limitFollower(
  buckets: BucketStore,
  resolver: ConfigResolver,
  python: PythonFollower | undefined,
): LimitFollower {
  return {
    entityLimitsChanged: (id, resource) => followLimits(buckets, resolver, id, resource),
    python,
  };
}

/** Returns the follower that brings changes of entities to their live buckets. */
export function entityBuckets(
  buckets: BucketStore,
  python: PythonFollower | undefined,
): EntityBuckets {
  const { pythonStamps } = buckets;
  return {
    relink: async (id, link) => {
      if (pythonStamps === undefined) await buckets.relink(id, link);
      else if (!(await pythonStamps.relinkUnstamped(id, link))) {
        await python?.stampOwner(id, () => {});
      }
    },
    python,
    deleteEntity: (id) => buckets.deleteEntity(id),
  };
}

/** Returns what stamps live buckets with what the levels of their place say. */
export function pythonFollower(
  context: RecordContext,
  { pythonStamps }: BucketStore,
  resolver: ConfigResolver,
): PythonFollower | undefined {
  if (pythonStamps === undefined) return undefined;
  const stamp = stamper(pythonStamps, resolver);
  const flags = async (id: string, resolution: Resolution) => ({
    state: stateOf(resolution),
    owner: await ownerOf(context, id, resolution.cascade),
  });
  const soft = async (_: string, { limits }: Resolution) => ({
    soft: new Map(limits?.limits.map((limit) => [limit.name, limit.soft])),
  });
  const owner = async (id: string, { cascade }: Resolution) => ({
    owner: await ownerOf(context, id, cascade),
  });
  return {
    claim: (feature) => claimFeature(context, feature),
    refuse: (reason) => refuseOnPythonTable(context, reason),
    stampFlags: (place, onStamped) => stamp(place, flags, onStamped),
    stampSoft: (place, onStamped) => stamp(place, soft, onStamped),
    stampOwner: (entityId, onStamped) => stamp({ entityId }, owner, onStamped),
  };
}

/** Returns a function that stamps the live buckets of a place with what the levels say. */
function stamper(pythonStamps: PythonStamps, resolver: ConfigResolver) {
  return (
    { entityId, resource: name }: StampedPlace,
    stampsOf: (entityId: string, resolution: Resolution) => Promise<FlagStamps>,
    onStamped: () => void,
  ): Promise<void> => {
    const resource = name === DEFAULT_RESOURCE ? undefined : name;
    const stamps = async (id: string, of: string) => stampsOf(id, await resolver.current(id, of));
    return pythonStamps.apply({ entityId, resource, stampsOf: stamps, onStamped });
  };
}

function stateOf({ disabledAt, bypassed }: Resolution): "enabled" | "disabled" | "bypass" {
  if (disabledAt !== undefined) return "disabled";
  return bypassed ? "bypass" : "enabled";
}

/** Reads the parent of an entity, and whether its buckets cascade to it. */
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
