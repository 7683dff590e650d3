/** Items under keys of one namespace, with the index keys of another. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";

/** Keys of the forged items: one of each kind that a policy lets a tenant write. */
export const KEYS_OF_THE_FORGER = [
  {
    name: "keys of entities",
    keyOf: (namespaceId: string, sort: string): Key => ({
      PK: `${namespaceId}/ENTITY#ghost`,
      SK: sort,
    }),
  },
  {
    name: "keys of buckets",
    keyOf: (namespaceId: string, sort: string): Key => ({
      PK: `${namespaceId}/BUCKET#ghost#gpt-4#${FORGED_SORTS.indexOf(sort)}`,
      SK: "#STATE",
    }),
  },
] as const;

const FORGED_SORTS = [
  "#META",
  "#CONFIG#gpt-4",
  "#STATE",
  "#USAGE#gpt-4#hourly#2026-01-01T00:00:00Z",
];

/** One item for each listing of the victim. */
export function forgedItems(
  victim: string,
  forger: string,
  keyOf: (namespaceId: string, sort: string) => Key,
): Item[] {
  const [meta, config, state, usage] = FORGED_SORTS.map((sort) => keyOf(forger, sort)) as [
    Key,
    Key,
    Key,
    Key,
  ];
  const about = { entity_id: "ghost", resource: "gpt-4" };
  const limit = { b_rpm_tk: 5000, b_rpm_cp: 5000, b_rpm_ra: 5000, b_rpm_rp: 60_000, b_rpm_tc: 0 };
  return [
    { ...meta, ...about, GSI1PK: `${victim}/PARENT#org`, GSI1SK: "CHILD#ghost", name: "ghost" },
    { ...config, ...about, GSI3PK: `${victim}/ENTITY_CONFIG#gpt-4`, GSI3SK: "ghost" },
    {
      ...state,
      ...about,
      ...limit,
      rf: 1_800_000_000_000,
      shard_count: 1,
      GSI2PK: `${victim}/RESOURCE#gpt-4`,
      GSI2SK: "BUCKET#ghost#0",
      GSI3PK: `${victim}/ENTITY#org`,
      GSI3SK: "BUCKET#gpt-4#1",
    },
    {
      ...usage,
      ...about,
      GSI2PK: `${victim}/RESOURCE#gpt-4`,
      GSI2SK: "USAGE#hourly#2026-01-01T00:00:00Z#ghost",
      window: "hourly",
      window_start: "2026-01-01T00:00:00Z",
      rpm: 123_456_789,
      total_events: 1,
    },
  ];
}
