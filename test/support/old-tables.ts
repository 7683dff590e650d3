/**
 * Tables as older versions of the Python library have left them, from what is known about their
 * layouts. `NOW` is when they are migrated.
 */

import type { Item, Value } from "@zae-limiter/limiter/storage/item.ts";

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

function limits(prefix: string, values: Record<string, [number, number, number, number?]>) {
  const attributes: Record<string, Value> = {};
  for (const [name, [cp, ra, rp, bx]] of Object.entries(values)) {
    attributes[`${prefix}_${name}_cp`] = cp;
    attributes[`${prefix}_${name}_ra`] = ra;
    attributes[`${prefix}_${name}_rp`] = rp;
    if (bx !== undefined) attributes[`${prefix}_${name}_bx`] = bx;
  }
  return attributes;
}

/** A bucket that lies with its entity, as from 0.7.0 to 0.8.0; 40 of 100 rpm are left. */
export function bucketOfEntity(
  id: string | undefined,
  entityId: string,
  more: Record<string, Value> = {},
): Item {
  return placed(id, {
    PK: `ENTITY#${entityId}`,
    SK: "#BUCKET#gpt-4",
    entity_id: entityId,
    resource: "gpt-4",
    rf: NOW - 6000,
    ...limits("b", { rpm: [100_000, 100_000, 60_000], tpm: [10_000_000, 10_000_000, 60_000] }),
    b_rpm_bx: 100_000,
    b_rpm_tk: 40_000,
    b_rpm_tc: 60_000,
    b_tpm_bx: 15_000_000,
    b_tpm_tk: -500_000,
    b_tpm_tc: 15_500_000,
    GSI2PK: "RESOURCE#gpt-4",
    GSI2SK: `BUCKET#${entityId}`,
    ttl: LATER,
    ...more,
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

function entity(id: string | undefined, entityId: string, parentId?: string): Item {
  return placed(id, {
    PK: `ENTITY#${entityId}`,
    SK: "#META",
    entity_id: entityId,
    name: `The ${entityId}`,
    parent_id: parentId ?? null,
    cascade: parentId !== undefined,
    metadata: { tier: "gold" },
    created_at: "2026-01-01T00:00:00Z",
    ...(parentId === undefined
      ? {}
      : { GSI1PK: `PARENT#${parentId}`, GSI1SK: `CHILD#${entityId}` }),
  });
}

function auditEvent(id: string | undefined, entityId: string, eventId: string): Item {
  return placed(id, {
    PK: `AUDIT#${entityId}`,
    SK: `#AUDIT#${eventId}`,
    event_id: eventId,
    entity_id: entityId,
    timestamp: "2026-01-01T00:00:00Z",
    action: "entity_created",
    principal: "ops-team",
    resource: null,
    details: { name: "x" },
    ttl: LATER,
  });
}

/** Everything that a table of 0.8.0 has of one namespace, or of none. */
export function contentsOf08(id: string | undefined): Item[] {
  return [
    entity(id, "org-1"),
    entity(id, "key-1", "org-1"),
    placed(id, {
      PK: "SYSTEM#",
      SK: "#CONFIG",
      on_unavailable: "block",
      config_version: 1,
      ...limits("l", { rpm: [50, 50, 60, 50] }),
    }),
    placed(id, {
      PK: "RESOURCE#gpt-4",
      SK: "#CONFIG",
      resource: "gpt-4",
      config_version: 1,
      ...limits("l", { rpm: [100, 100, 60, 100], tpm: [10_000, 10_000, 60, 15_000] }),
    }),
    placed(id, { PK: "SYSTEM#", SK: "#RESOURCES", resources: new Set(["gpt-4"]) }),
    placed(id, {
      PK: "ENTITY#key-1",
      SK: "#CONFIG#_default_",
      entity_id: "key-1",
      resource: "_default_",
      config_version: 1,
      ...limits("l", { rpm: [10, 10, 60, 20] }),
      GSI3PK: "ENTITY_CONFIG#_default_",
      GSI3SK: "key-1",
    }),
    // One too many: an entity was deleted with its limits.
    placed(id, { PK: "SYSTEM#", SK: "#ENTITY_CONFIG_RESOURCES", _default_: 2, "gpt-3": 1 }),
    bucketOfEntity(id, "org-1"),
    bucketOfEntity(id, "key-1"),
    usage(id, "key-1", "hourly", HOUR, { rpm: 4, tpm: 2100, total_events: 8 }),
    usage(id, "key-1", "daily", DAY, { rpm: 9, tpm: 5000, total_events: 18 }),
    auditEvent(id, "org-1", "01M7G7PX76Z6KZAK4FZ2WJKRA8"),
  ];
}

/** 0.8.0 before there were namespaces. */
export function table08(): Item[] {
  return [version("0.8.0", "SYSTEM#"), ...contentsOf08(undefined)];
}

/** 0.8.0 with namespaces. */
export function table08Namespaced(): Item[] {
  return [
    version("0.8.0"),
    ...namespace("default", DEFAULT_ID),
    ...namespace("tenant-a", OTHER_ID),
    ...contentsOf08(DEFAULT_ID),
    ...contentsOf08(OTHER_ID),
  ];
}

/** The first layouts: attributes in `data`, an item for each limit of a bucket and of a config. */
export function firstTable(): Item[] {
  const bucket = (limit: string, more: Record<string, Value>): Item => ({
    PK: "ENTITY#key-1",
    SK: `#BUCKET#gpt-4#${limit}`,
    entity_id: "key-1",
    data: { resource: "gpt-4", limit_name: limit, ...more },
    total_consumed_milli: 60_000,
    GSI2PK: "RESOURCE#gpt-4",
    GSI2SK: `BUCKET#key-1#${limit}`,
    ttl: LATER,
  });
  const limit = (PK: string, SK: string, more: Record<string, Value>): Item => ({
    PK,
    SK,
    refill_period_seconds: 60,
    ...more,
  });
  return [
    {
      PK: "SYSTEM#",
      SK: "#VERSION",
      data: { schema_version: "1.0.0", lambda_version: "0.5.0", client_min_version: "0.0.0" },
    },
    {
      PK: "ENTITY#key-1",
      SK: "#META",
      entity_id: "key-1",
      data: {
        name: "Key One",
        parent_id: "org-1",
        metadata: { tier: "gold" },
        created_at: "2026-01-01T00:00:00Z",
      },
      GSI1PK: "PARENT#org-1",
      GSI1SK: "CHILD#key-1",
    },
    bucket("rpm", {
      tokens_milli: 40_000,
      capacity_milli: 100_000,
      burst_milli: 100_000,
      refill_amount_milli: 100_000,
      refill_period_ms: 60_000,
      last_refill_ms: NOW - 6000,
    }),
    // Refilled three seconds later than the other.
    bucket("tpm", {
      tokens_milli: 2_000_000,
      capacity_milli: 10_000_000,
      burst_milli: 15_000_000,
      refill_amount_milli: 10_000_000,
      refill_period_ms: 60_000,
      last_refill_ms: NOW - 3000,
    }),
    limit("SYSTEM#", "#LIMIT#rpm", {
      limit_name: "rpm",
      capacity: 50,
      burst: 50,
      refill_amount: 50,
    }),
    { PK: "SYSTEM#", SK: "#CONFIG", on_unavailable: "allow" },
    limit("RESOURCE#gpt-4", "#LIMIT#tpm", {
      limit_name: "tpm",
      capacity: 10_000,
      burst: 15_000,
      refill_amount: 10_000,
    }),
    limit("RESOURCE#gpt-4", "#LIMIT#rpm", {
      limit_name: "rpm",
      capacity: 100,
      burst: 100,
      refill_amount: 100,
    }),
    limit("ENTITY#key-1", "#LIMIT#gpt-4#rpm", {
      data: { resource: "gpt-4", limit_name: "rpm", capacity: 10, burst: 20, refill_amount: 10 },
    }),
    {
      PK: "AUDIT#key-1",
      SK: "#AUDIT#01M7G7PX7CZ5V051BZTT8BT862",
      entity_id: "key-1",
      data: {
        event_id: "01M7G7PX7CZ5V051BZTT8BT862",
        timestamp: "2026-01-01T00:00:00Z",
        action: "entity_created",
        principal: "ops-team",
        details: { name: "x" },
      },
      ttl: LATER,
    },
  ];
}
