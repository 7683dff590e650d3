/**
 * Items as a hostile or broken writer could leave them: sound ones with some attributes changed.
 */

import { type Item, OpaqueValue, type Value } from "@zae-limiter/limiter/storage/item.ts";

export type Random = () => number;

const AT = 1_800_000_000_000;

/** One sound item of each kind, as this library writes them. */
export const SOUND_ITEMS: readonly Item[] = [
  {
    PK: "ns/BUCKET#user-1#gpt-4#0",
    SK: "#STATE",
    GSI2PK: "ns/RESOURCE#gpt-4",
    GSI2SK: "BUCKET#user-1#0",
    GSI3PK: "ns/ENTITY#user-1",
    GSI3SK: "BUCKET#gpt-4#0",
    GSI4PK: "ns",
    GSI4SK: "BUCKET#user-1#gpt-4#0",
    entity_id: "user-1",
    resource: "gpt-4",
    rf: AT,
    cascade: false,
    shard_count: 2,
    ttl: AT / 1000 + 3600,
    cv: 3,
    cs: "system",
    ac: 7,
    wm: AT,
    rn: 1,
    b_rpm_tk: 90_000,
    b_rpm_cp: 100_000,
    b_rpm_ra: 100_000,
    b_rpm_rp: 60_000,
    b_rpm_tc: 10_000,
    b_rpm_rr: 1,
    b_wcu_tk: 999_000,
    b_wcu_cp: 1_000_000,
    b_wcu_ra: 1_000_000,
    b_wcu_rp: 1000,
    b_wcu_tc: 0,
  },
  {
    PK: "ns/ENTITY#user-1",
    SK: "#USAGE#gpt-4#hourly#2026-11-16T14:00:00Z",
    GSI2PK: "ns/RESOURCE#gpt-4",
    GSI2SK: "USAGE#hourly#2026-11-16T14:00:00Z#user-1",
    entity_id: "user-1",
    resource: "gpt-4",
    window: "hourly",
    window_start: "2026-11-16T14:00:00Z",
    rpm: 12.5,
    total_events: 3,
    "@0": "02421",
    ttl: AT / 1000,
  },
  {
    PK: "ns/ENTITY#user-1",
    SK: "#META",
    GSI1PK: "ns/PARENT#org",
    GSI1SK: "CHILD#user-1",
    entity_id: "user-1",
    name: "User",
    parent_id: "org",
    cascade: true,
    metadata: { plan: "free", seats: 3, tags: ["a"] },
    created_at: "2026-11-16T14:00:00Z",
  },
  {
    PK: "ns/AUDIT#user-1",
    SK: "#AUDIT#01KA6Q8Z9F4N2M3P5R7T9V1X3Y",
    entity_id: "user-1",
    event_id: "01KA6Q8Z9F4N2M3P5R7T9V1X3Y",
    timestamp: "2026-11-16T14:00:00Z",
    action: "limits_set",
    principal: "ops",
    resource: null,
    details: { limits: [{ name: "rpm", capacity: 100 }] },
    ttl: AT / 1000,
  },
  {
    PK: "ns/SYSTEM#",
    SK: "#CONFIG",
    config_version: 4,
    on_unavailable: "allow",
    audit_retention_days: 30,
    l_rpm_cp: 100,
    l_rpm_ra: 100,
    l_rpm_rp: 60,
  },
  {
    PK: "_/SYSTEM#",
    SK: "#VERSION",
    schema_version: "0.11.0",
    lambda_version: null,
    client_min_version: "0.0.0",
    updated_at: "2026-11-16T14:00:00Z",
  },
];

/** Values that replace an attribute. */
const VALUES: readonly (() => Value)[] = [
  () => 0,
  () => -1,
  () => 1,
  () => 1.5,
  () => 3,
  () => 65,
  () => 20_000_000,
  () => 5_000_000_000,
  () => -(2 ** 53),
  () => Number.MAX_SAFE_INTEGER,
  () => 8_640_000_000_000_001,
  () => 1e125,
  () => -1e125,
  () => 1e-130,
  () => 10n ** 37n,
  () => -(10n ** 37n),
  () => "",
  () => "0",
  () => "NaN",
  () => "+275760-09-13T00:00:00Z",
  () => "#",
  () => "../../../etc",
  () => "\u001b[2J\u0000",
  () => "x".repeat(3000),
  () => true,
  () => null,
  () => [],
  () => [1, [2, [3]]],
  () => ({}),
  () => ({ __proto__: null, constructor: 1 }),
  () => new Set(["a"]),
  () => new OpaqueValue({ B: "AAAA" }),
  () => new OpaqueValue({ NS: ["1", "2"] }),
];

const NAMES = ["b__tk", "b_x_tk", "b_toString_tc", "b_@0_tc", `b_${"n".repeat(500)}_tk`, "l__cp"];
const KEYS = [
  "",
  "/",
  "ns/",
  "ns/BUCKET#",
  "ns/BUCKET#a#b#",
  "ns/BUCKET#a#b#1e1",
  "ns/BUCKET#a#b#64",
];

/** A sound item of one kind, or of any, with one to four changes. */
export function hostileItem(random: Random, kind?: number): Item {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const sound = kind === undefined ? pick(SOUND_ITEMS) : (SOUND_ITEMS[kind] as Item);
  const item: Record<string, Value> & { PK: string; SK: string } = { ...sound };
  const changes = 1 + Math.floor(random() * 4);
  for (let change = 0; change < changes; change += 1) {
    // Stores refuse keys that are no texts, so such items cannot be stored.
    const names = Object.keys(item).filter((name) => !/^(?:GSI\d)?[PS]K$/.test(name));
    const what = random();
    if (what < 0.7) item[pick(names)] = pick(VALUES)();
    else if (what < 0.8) delete item[pick(names)];
    else if (what < 0.9) item[pick(NAMES)] = pick(VALUES)();
    else if (kind === undefined) item.PK = pick(KEYS);
  }
  return item;
}

/**
 * Returns an item in a form that a store of ours accepts: it refuses to write such numbers itself.
 */
export function storable(item: Item): Item {
  const parts = Object.entries(item).map(([name, value]) => [
    name,
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
      ? new OpaqueValue({ N: String(value) })
      : value,
  ]);
  return Object.fromEntries(parts) as Item;
}
