/**
 * Tables as older versions of the Python library have left them, from what is known about their
 * layouts: those of 0.9.0 and 0.10.0 are migrated at `NOW`, older ones are refused.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";

/** Not in the past: an engine would remove what has expired. */
export const NOW = Math.floor(Date.now() / 1000) * 1000 + 3_600_000;
const LATER = NOW / 1000 + 30 * 86_400;
export const DAY = "2026-11-15T00:00:00Z";
export const HOUR = "2026-11-15T18:00:00Z";

export const DEFAULT_ID = "OJEOS3iJbYI";
export const OTHER_ID = "LmC1y6UwDVo";

/** Puts a namespace before keys, with the keys of GSI4; none for tables that know no namespaces. */
function placed(namespaceId: string | undefined, item: Item): Item {
  if (namespaceId === undefined) return item;
  const entries = Object.entries(item).map(([name, value]) =>
    name === "PK" || /^GSI[123]PK$/.test(name)
      ? [name, `${namespaceId}/${String(value)}`]
      : [name, value],
  );
  const moved = Object.fromEntries(entries) as unknown as Item;
  return { ...moved, GSI4PK: namespaceId, GSI4SK: moved.PK };
}

/** The records of a namespace, by name and by id. */
export function namespace(name: string, id: string, status = "active"): Item[] {
  const shared = {
    PK: "_/SYSTEM#",
    GSI4PK: "_",
    GSI4SK: "_/SYSTEM#",
    namespace_id: id,
    namespace_name: name,
    status,
    created_at: "2026-01-01T00:00:00Z",
  };
  const reverse = { ...shared, SK: `#NSID#${id}` };
  return status === "active" ? [{ ...shared, SK: `#NAMESPACE#${name}` }, reverse] : [reverse];
}

export function version(schema: string, PK = "_/SYSTEM#"): Item {
  return {
    PK,
    SK: "#VERSION",
    schema_version: schema,
    lambda_version: "0.9.1",
    client_min_version: "0.0.0",
    updated_at: "2026-01-01T00:00:00Z",
    updated_by: "client:0.9.1",
    ...(PK === "_/SYSTEM#" ? { GSI4PK: "_", GSI4SK: PK } : {}),
  };
}

/** A bucket that lies with its entity, as before 0.9.0: nothing reads it any more. */
export function bucketOfEntity(id: string | undefined, entityId: string): Item {
  return placed(id, {
    PK: `ENTITY#${entityId}`,
    SK: "#BUCKET#gpt-4",
    entity_id: entityId,
    resource: "gpt-4",
    rf: NOW - 6000,
    b_rpm_cp: 100_000,
    b_rpm_bx: 100_000,
    b_rpm_ra: 100_000,
    b_rpm_rp: 60_000,
    b_rpm_tk: 40_000,
    b_rpm_tc: 60_000,
    GSI2PK: "RESOURCE#gpt-4",
    GSI2SK: `BUCKET#${entityId}`,
    ttl: LATER,
  });
}

/** A snapshot whose key does not say its window. */
export function usage(
  id: string | undefined,
  entityId: string,
  window: string,
  start: string,
  counts: Record<string, number>,
): Item {
  return placed(id, {
    PK: `ENTITY#${entityId}`,
    SK: `#USAGE#gpt-4#${start}`,
    entity_id: entityId,
    resource: "gpt-4",
    window,
    window_start: start,
    ...counts,
    GSI2PK: "RESOURCE#gpt-4",
    GSI2SK: `USAGE#${start}#${entityId}`,
    ttl: LATER,
  });
}

/** A table as the Python library leaves it, with an item for each rule of the step to 0.11.0. */
export function unfinishedTable(schema: string): Item[] {
  const ofEntity = { config_version: 1, l_rpm_cp: 10, l_rpm_ra: 10, l_rpm_rp: 60 };
  return [
    version(schema),
    ...namespace("default", DEFAULT_ID),
    ...namespace("tenant-a", OTHER_ID),
    { PK: "default/SYSTEM#", SK: "#CONFIG", GSI4PK: "default", audit_retention_days: 14 },
    ...[DEFAULT_ID, OTHER_ID].flatMap((id) => [
      placed(id, { PK: "ENTITY#key-1", SK: "#META", entity_id: "key-1", name: "The key-1" }),
      placed(id, { PK: "ENTITY#key-1", SK: "#CONFIG#gpt-4", ...ofEntity }),
      { PK: `${id}/RESOURCE#gpt-4`, SK: "#CONFIG", resource: "gpt-4", ...ofEntity },
      { PK: `${id}/BUCKET#ghost#gpt-4#0`, SK: "#STATE", b_rpm_tk: 5000, b_rpm_tc: -5000 },
      bucketOfEntity(id, "key-1"),
      usage(id, "key-1", "hourly", HOUR, { rpm: 4, tpm: 2100, total_events: 8 }),
      usage(id, "key-1", "daily", DAY, { rpm: 9, tpm: 5000, total_events: 18 }),
    ]),
  ];
}

/** Records of a layout before 0.9.0, in a namespace or in none. */
function contentsOf08(id: string | undefined): Item[] {
  const limits = { config_version: 1, l_rpm_cp: 50, l_rpm_ra: 50, l_rpm_rp: 60, l_rpm_bx: 70 };
  return [
    placed(id, { PK: "ENTITY#key-1", SK: "#META", entity_id: "key-1", name: "The key-1" }),
    placed(id, { PK: "SYSTEM#", SK: "#CONFIG", ...limits }),
    bucketOfEntity(id, "key-1"),
    usage(id, "key-1", "hourly", HOUR, { rpm: 4, total_events: 8 }),
  ];
}

/** 0.8.0 with namespaces. */
export function table08(): Item[] {
  return [version("0.8.0"), ...namespace("default", DEFAULT_ID), ...contentsOf08(DEFAULT_ID)];
}

/** 0.8.0 before there were namespaces. */
export function tableWithoutNamespaces(): Item[] {
  return [version("0.8.0", "SYSTEM#"), ...contentsOf08(undefined)];
}

/** The first layout: attributes in `data`, versions counted from 1.0.0. */
export function firstTable(): Item[] {
  const data = { schema_version: "1.0.0", lambda_version: "0.5.0", client_min_version: "0.0.0" };
  return [
    { PK: "SYSTEM#", SK: "#VERSION", data },
    { PK: "ENTITY#key-1", SK: "#META", entity_id: "key-1", data: { name: "Key One" } },
  ];
}

/** A table that a newer Python client has opened: a namespace, and old records outside of it. */
export function halfNamespacedTable(): Item[] {
  return [...tableWithoutNamespaces(), version("0.10.0"), ...namespace("default", DEFAULT_ID)];
}
