/**
 * The history behind items of Python 0.17, made by this library: what it stores is the same,
 * attribute for attribute. What differs is named here, and in `docs/reference/dynamodb-schema.md`.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { pythonItem, pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { decodeTime } from "ulid";
import { beforeEach, expect, test } from "vitest";

/** Ours on a bucket: version and source of its limits, acquires, the meter, a longer life. */
const OURS = ["cv", "cs", "ac", "wm", "ttl"];

let nowMs: number;
let items: MemoryItemStore;
let repo: Repository;
let limiter: RateLimiter;

beforeEach(async () => {
  nowMs = 1_794_827_860_000;
  items = new MemoryItemStore({ clock: () => nowMs });
  repo = await overTable(items, { clock: () => nowMs });
  limiter = new RateLimiter(repo);
});

function without(item: object | undefined, ...names: string[]): Record<string, unknown> {
  const kept = Object.entries(item ?? {}).filter(([name]) => !names.includes(name));
  return Object.fromEntries(kept);
}

/** Fails unless the items of a fixture are stored, apart from these attributes. */
async function expectWritten(file: string, ...aside: string[]): Promise<void> {
  for (const golden of pythonItems(file, repo.namespaceId)) {
    const stored = await items.get(golden);
    expect(without(stored, ...aside), golden.PK).toEqual(without(golden, ...aside));
  }
}

/** Moves the clock to the base time of a bucket in a fixture. */
function atBase(file: string, at = 0): void {
  nowMs = Number(pythonItems(file, repo.namespaceId)[at]?.rf);
}

const acquire = (entityId: string, resource: string, consume: Record<string, number>) =>
  limiter.acquire({ entityId, resource, consume });

test("buckets of a resource that is off, and of an entity for which it is on", async () => {
  await repo.limits.setResource("dis", ["rpm:100"]);
  for (const [at, id] of ["u1", "u2"].entries()) {
    atBase("47-buckets-disabled", at);
    await acquire(id, "dis", { rpm: 1 });
  }
  await repo.limits.enable({ entityId: "u2", resource: "dis" });
  expect(await repo.limits.disable({ resource: "dis" })).toEqual({ stampedBuckets: 1 });
  await expectWritten("47-buckets-disabled", ...OURS);
});

test("a bucket under bypass; the meter of Python stays full, and stamps last a minute", async () => {
  const file = "49-bucket-bypass";
  await repo.limits.setResource("byp", ["rpm:100"]);
  atBase(file);
  await acquire("u1", "byp", { rpm: 1 });
  await repo.limits.bypass({ entityId: "u1", resource: "byp" });
  await acquire("u1", "byp", { rpm: 7 });
  await expectWritten(file, ...OURS, "bypass", "b_wcu_tk", "b_wcu_tc");
  const golden = pythonItem(file, repo.namespaceId);
  const stored = await items.get(golden);
  expect(stored).toMatchObject({ b_wcu_tk: 1_000_000, bypass: nowMs + 60_000 });
  expect(golden).toHaveProperty("bypass");
});

test("a bucket with a soft limit in debt; its stamp makes Python read the config", async () => {
  await repo.limits.setResource("soft", ["rpm:100", "tpm:100 soft"]);
  atBase("51-bucket-soft");
  await acquire("u1", "soft", { rpm: 1, tpm: 250 });
  await expectWritten("51-bucket-soft", ...OURS, "b_tpm_soft");
  const golden = pythonItem("51-bucket-soft", repo.namespaceId);
  expect((await items.get(golden))?.b_tpm_soft).toBe(nowMs);
});

test("a cascade policy, the buckets it is stamped on, and those of an entity that moves", async () => {
  // Entities of this library have no generation before they move, and no incarnation but the time
  // of their creation: Python reads 0 and that time where the attributes are absent.
  const [child, parent] = pythonItems("54-buckets-owner-stamps", repo.namespaceId);
  const owner = pythonItem("53-entity-meta-pgen-pinc", repo.namespaceId);
  nowMs = Number(owner.pgen);
  for (const id of ["org-a", "org-b"]) await repo.entities.create({ id });
  await repo.entities.create({ id: "user-1", parentId: "org-a" });
  await expectWritten("53-entity-meta-pgen-pinc", "pgen", "pinc");
  for (const [id, stamped] of [
    ["user-1", child],
    ["org-a", parent],
  ] as const) {
    const key = { PK: `${repo.namespaceId}/ENTITY#${id}`, SK: "#META" };
    await items.update(key, { set: { pgen: Number(stamped?.pgen), pinc: String(stamped?.pinc) } });
  }
  await expectWritten("53-entity-meta-pgen-pinc");
  await repo.limits.setResource("casc", ["rpm:100"]);
  await repo.limits.setCascade({ resource: "casc" }, true);
  await expectWritten("52-config-resource-cascade");
  atBase("54-buckets-owner-stamps");
  await acquire("user-1", "casc", { rpm: 1 });
  await expectWritten("54-buckets-owner-stamps", ...OURS);
  await repo.entities.setParent("user-1", "org-b");
  await expectWritten("55-entity-meta-after-move");
  await expectWritten("56-bucket-after-move", ...OURS);
  await repo.entities.setParent("user-1", null);
  await expectWritten("57-entity-meta-after-move-to-no-parent");
});

test("the version record, but for the schema and the Lambda, which are ours", async () => {
  await repo.limits.bypass({ resource: "r" });
  const ours = ["lambda_version", "schema_version", "updated_at", "updated_by"];
  await expectWritten("63-version-record-after-top-up", ...ours);
});

/** Ids and writers are random; their form is not. */
const RANDOM = /(?<=#OP#|#)[0-9A-HJKMNP-TV-Z]{26}$/;
const shape = (item: Item | undefined) => ({
  ...item,
  SK: item?.SK.replace(RANDOM, "<id>"),
  GSI4SK: String(item?.GSI4SK).replace(RANDOM, "<id>"),
  writer: /^[0-9a-f]{24}$/.test(String(item?.writer)),
});

test("the record of a top-up with a key, and of a reset without one", async () => {
  const DAYS_MS = 3 * 86_400_000;
  const recordOf = async ({ PK }: Item) => {
    const found: Item[] = [];
    for await (const item of items.query({ partition: PK, sort: { beginsWith: "#OP#" } })) {
      found.push(item);
    }
    expect(found).toHaveLength(1);
    return found[0] as Item;
  };
  const expires = { ttl: Math.floor((nowMs + DAYS_MS) / 1000) };
  const topUp = pythonItem("59-operation-record", repo.namespaceId);
  await repo.limits.setResource("session", ["session:10000/day"]);
  await acquire("u1", "session", { session: 6000 });
  const order = { amounts: { session: 5000 }, idempotencyKey: "order-1" };
  await repo.buckets.topUp({ entityId: "u1", resource: "session", ...order });
  expect(shape(await recordOf(topUp))).toEqual({ ...shape(topUp), ...expires });
  const reset = pythonItem("62-operation-record-reset", repo.namespaceId);
  await repo.limits.setResource("sched", ["rpm:1000", "tpm:50000", "rpd:10000/day"]);
  await acquire("u1", "sched", { rpd: 1 });
  await repo.buckets.reset({ entityId: "u1", resource: "sched" });
  const made = await recordOf(reset);
  expect(shape(made)).toEqual({ ...shape(reset), ...expires });
  expect(decodeTime(made.SK.slice("#OP#".length))).toBe(nowMs);
});

test("audit events: limits, switches, policies, moves, top-ups and resets", async () => {
  const golden = pythonItems("64-audit-events", repo.namespaceId);
  const principal = "golden";
  /** Makes a change at the time of an event, and compares what is written with it. */
  const expectEvent = async (at: number, change: () => Promise<unknown>) => {
    const event = golden[at] as Item;
    nowMs = decodeTime(String(event.event_id));
    await change();
    const [newest] = await repo.audit.list(String(event.entity_id));
    const id = newest?.eventId ?? "";
    expect(decodeTime(id)).toBe(nowMs);
    const stored = await items.get({ PK: event.PK, SK: `#AUDIT#${id}` });
    const days = { ttl: Math.floor(nowMs / 1000) + 90 * 86_400 };
    expect(without(stored, "SK", "event_id")).toEqual({
      ...without(event, "SK", "event_id"),
      ...days,
    });
  };
  await expectEvent(2, () => repo.limits.setResource("dis", ["rpm:100"], { principal }));
  for (const id of ["u1", "u2"]) await acquire(id, "dis", { rpm: 1 });
  await expectEvent(3, () => repo.limits.disable({ resource: "dis" }, { principal }));
  await repo.limits.setResource("byp", ["rpm:100"]);
  await acquire("u1", "byp", { rpm: 1 });
  const place = { entityId: "u1", resource: "byp" };
  await expectEvent(4, () => repo.limits.bypass(place, { principal }));
  const soft = ["rpm:100", "tpm:100 soft"];
  await expectEvent(5, () => repo.limits.setResource("soft", soft, { principal }));
  await expectEvent(6, () => repo.entities.create({ id: "org-a", principal }));
  await repo.entities.create({ id: "org-b" });
  await repo.entities.create({ id: "user-1", parentId: "org-a" });
  const { details } = golden[8] as Item;
  const pgen = Number((details as Record<string, unknown>)["pgen"]) - 1;
  const user = { PK: `${repo.namespaceId}/ENTITY#user-1`, SK: "#META" };
  await items.update(user, { set: { pgen } });
  await expectEvent(7, () => repo.limits.setCascade({ resource: "casc" }, true, { principal }));
  await repo.limits.setResource("casc", ["rpm:100"]);
  await acquire("user-1", "casc", { rpm: 1 });
  await expectEvent(8, () => repo.entities.setParent("user-1", "org-b", { principal }));
  await repo.limits.setResource("session", ["session:10000/day"]);
  await acquire("u1", "session", { session: 6000 });
  const order = { entityId: "u1", resource: "session", amounts: { session: 5000 } };
  await expectEvent(9, () => repo.buckets.topUp({ ...order, principal }));
  await repo.limits.setResource("sched", ["rpm:1000", "tpm:50000", "rpd:10000/day"]);
  nowMs = decodeTime(String(golden[10]?.event_id));
  await acquire("u1", "sched", { rpd: 1 });
  const reset = { entityId: "u1", resource: "sched", principal };
  await expectEvent(10, () => repo.buckets.reset(reset));
});

test("a level with a session, its bucket, and that after a top-up and a reset", async () => {
  await repo.limits.setResource("session", ["rpm:60", "session:10000/session:5hour"]);
  await expectWritten("42-config-resource-session-quota", "config_version");
  const [bucket] = pythonItems("43-bucket-session-quota", repo.namespaceId);
  nowMs = Number(bucket?.b_session_wa);
  await acquire("u1", "session", { rpm: 1, session: 1500 });
  await expectWritten("43-bucket-session-quota", ...OURS, "rf");
  const u1 = { entityId: "u1", resource: "session" };
  await repo.buckets.topUp({ ...u1, amounts: { session: 5000 } });
  atBase("61-bucket-session-reset");
  await repo.buckets.reset(u1);
  // The rate is as full here, by a balance of an earlier base time.
  await expectWritten("61-bucket-session-reset", ...OURS, "rn", "rf", "b_rpm_tk");
  expect(await limiter.available(u1)).toEqual({ rpm: 60, session: 10_000 });
});

const NEW_YORK = { timeZone: "America/New_York" };
const WINDOWS = [
  { when: "mon-fri 9-18", scale: 0.5, ...NEW_YORK },
  { when: "cron(*/15 0-6 1,15 JAN-JUN *)", limit: "rpm:50/30sec:2000", ...NEW_YORK },
];

test("a level with windows and a calendar quota, its bucket, and that after a reset", async () => {
  const rpm = Limit.parse("rpm:1000").withSchedule(WINDOWS);
  await repo.limits.setResource("sched", [rpm, "tpm:50000", "rpd:10000/day America/New_York"]);
  await expectWritten("40-config-resource-schedules", "config_version");
  atBase("41-bucket-schedules");
  await acquire("u1", "sched", { rpm: 1, tpm: 10, rpd: 1 });
  await expectWritten("41-bucket-schedules", ...OURS, "b_rpd_pe");
  atBase("60-bucket-reset");
  const u1 = { entityId: "u1", resource: "sched" };
  await repo.buckets.reset(u1);
  const balances = ["rf", "b_rpm_tk", "b_tpm_tk"];
  await expectWritten("60-bucket-reset", ...OURS, "b_rpd_pe", ...balances);
  expect(await limiter.available(u1)).toEqual({ rpm: 1000, tpm: 50_000, rpd: 10_000 });
});
