/** The audit log: newest first, never without the change and never missing. */

import type { AuditEvent } from "@zae-limiter/limiter/records/audit.ts";
import { auditKey, auditPartition, systemConfigKey } from "@zae-limiter/limiter/records/keys.ts";
import { CallCounter, describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const DAY_SECONDS = 86_400;

function actions(events: readonly AuditEvent[]): string[] {
  return events.map(({ action }) => action);
}

describeStores("the audit log", (store) => {
  it("the audit log tells of a creation and a deletion, newest first (A192)", async () => {
    const nowMs = Date.UTC(2030, 0, 1, 12, 0, 0, 5);
    const repo = await store.open({ clock: () => nowMs });
    await repo.entities.create({ id: "key-1", name: "Key", principal: "ops" });
    const [created, ...others] = await repo.audit.list("key-1");
    expect(others).toEqual([]);
    expect(created).toEqual({
      eventId: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
      timestamp: "2030-01-01T12:00:00Z",
      action: "entity_created",
      entityId: "key-1",
      principal: "ops",
      details: { name: "Key", parent_id: null, cascade: false, metadata: {} },
    });
    await repo.entities.delete("key-1", { principal: "arn:aws:iam::123456789012:user/bob" });
    const events = await repo.audit.list("key-1");
    expect(actions(events)).toEqual(["entity_deleted", "entity_created"]);
    expect(events[0]).toMatchObject({
      principal: "arn:aws:iam::123456789012:user/bob",
      details: { records_deleted: 1 },
    });
  });

  it("the audit log tells of limits: whose, for what, and which (A192, A193)", async () => {
    const repo = await store.open();
    const { limits } = repo;
    await limits.setEntity("key-1", ["rpm:1", "tpm:2"], { resource: "gpt-4", principal: "ops" });
    await limits.deleteEntity("key-1", { resource: "gpt-4" });
    await limits.setResource("gpt-4", ["rpm:3"], { principal: "ops" });
    await limits.deleteResource("gpt-4", { principal: "bob" });
    await limits.setSystem(["rpm:4"], { onUnavailable: "allow", principal: "ops" });
    await limits.deleteSystem({ principal: "bob" });
    const rpm = (amount: number, name = "rpm") => ({
      name,
      capacity: amount,
      refill_amount: amount,
      refill_period_seconds: 60,
    });
    const told = async (subject: string) =>
      (await repo.audit.list(subject)).map(({ action, principal, resource, details }) => ({
        action,
        principal,
        resource,
        details,
      }));
    expect(await told("key-1")).toEqual([
      { action: "limits_deleted", principal: undefined, resource: "gpt-4", details: {} },
      {
        action: "limits_set",
        principal: "ops",
        resource: "gpt-4",
        details: { limits: [rpm(1), rpm(2, "tpm")] },
      },
    ]);
    expect(await told("$RESOURCE:gpt-4")).toEqual([
      { action: "limits_deleted", principal: "bob", resource: "gpt-4", details: {} },
      { action: "limits_set", principal: "ops", resource: "gpt-4", details: { limits: [rpm(3)] } },
    ]);
    expect(await told("$SYSTEM")).toEqual([
      {
        action: "limits_deleted",
        principal: "bob",
        resource: undefined,
        details: { limits: ["rpm"], on_unavailable: "allow" },
      },
      {
        action: "limits_set",
        principal: "ops",
        resource: undefined,
        details: { limits: [rpm(4)], on_unavailable: "allow" },
      },
    ]);
    expect(await told("gpt-4")).toEqual([]);
  });

  it("the audit log gives as many events as asked for, and goes on after one (A192)", async () => {
    // All in one millisecond, so that the order is that of the ids alone.
    const nowMs = Date.now();
    const repo = await store.open({ clock: () => nowMs });
    for (let amount = 1; amount <= 6; amount += 1) {
      await repo.limits.setEntity("key-1", [`rpm:${amount}`]);
    }
    const all = await repo.audit.list("key-1");
    const ids = all.map(({ eventId }) => eventId);
    expect(ids).toEqual([...ids].sort().reverse());
    expect(all.map(({ details }) => JSON.stringify(details).match(/"capacity":(\d)/)?.[1])).toEqual(
      ["6", "5", "4", "3", "2", "1"],
    );
    const first = await repo.audit.list("key-1", { limit: 3 });
    expect(first).toEqual(all.slice(0, 3));
    const rest = await repo.audit.list("key-1", { after: first[2]?.eventId as string });
    expect(rest).toEqual(all.slice(3));
    expect(await repo.audit.list("key-1", { after: ids.at(-1) as string })).toEqual([]);
    const next = { limit: 1, after: ids[0] as string };
    expect(await repo.audit.list("key-1", next)).toEqual([all[1]]);
  });

  it("the audit log keeps events for 90 days, or as long as the namespace says (A192)", async () => {
    const nowMs = Date.now() + 1000;
    const nowSeconds = Math.floor(nowMs / 1000);
    const repo = await store.open({ clock: () => nowMs, configCacheTtlSeconds: 0 });
    const partition = auditPartition(repo.namespaceId, "key-1");
    const ttls = async () => (await store.itemsOf(partition)).map(({ ttl }) => Number(ttl));
    await repo.limits.setEntity("key-1", ["rpm:1"]);
    await repo.entities.create({ id: "key-1" });
    expect(await ttls()).toEqual([nowSeconds + 90 * DAY_SECONDS, nowSeconds + 90 * DAY_SECONDS]);
    const key = systemConfigKey(repo.namespaceId);
    await store.items.update(key, { set: { audit_retention_days: 7 } });
    await repo.limits.setEntity("key-1", ["rpm:2"]);
    await repo.entities.delete("key-1");
    expect((await ttls()).slice(2)).toEqual([
      nowSeconds + 7 * DAY_SECONDS,
      nowSeconds + 7 * DAY_SECONDS,
    ]);
  });

  it("the audit log passes over items that are no events, without giving fewer than asked for", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "key-1" });
    await repo.entities.delete("key-1");
    const [newest, oldest] = await repo.audit.list("key-1");
    // Between the two: the id of the newest, and one character more.
    const odd = `${oldest?.eventId}Z`;
    await store.items.put({ ...auditKey(repo.namespaceId, "key-1", odd), text: "not ours" });
    expect(await repo.audit.list("key-1", { limit: 2 })).toEqual([newest, oldest]);
  });

  it("the audit log reads little when little is asked for", async () => {
    const counter = new CallCounter();
    const repo = await store.open({ onCall: counter.onCall });
    const metadata = { text: "x".repeat(30_000) };
    for (const id of ["key-1", "key-1", "key-1"]) {
      await repo.entities.create({ id, metadata });
      await repo.entities.delete(id);
    }
    const before = counter.calls.length;
    expect(await repo.audit.list("key-1", { limit: 1 })).toHaveLength(1);
    const units = counter.calls.slice(before).map(({ readUnits }) => readUnits);
    expect(units).toHaveLength(1);
    expect(units[0]).toBeLessThanOrEqual(1);
  });

  it("the audit log refuses subjects, ids and counts that cannot be", async () => {
    const { audit } = await store.open();
    const refusals: [field: string, call: Promise<unknown>][] = [
      ["entity_id", audit.list("")],
      ["entity_id", audit.list("$OTHER")],
      ["resource", audit.list("$RESOURCE:a#b")],
      ["after", audit.list("key-1", { after: "" })],
      ["after", audit.list("key-1", { after: "not a ulid" })],
      ["limit", audit.list("key-1", { limit: 0 })],
      ["limit", audit.list("key-1", { limit: 10_001 })],
    ];
    for (const [field, call] of refusals) await expect(call).rejects.toMatchObject({ field });
    expect(await audit.list("$SYSTEM")).toEqual([]);
  });

  it("the audit log belongs to its readers: what they do to an event stays with them", async () => {
    const repo = await store.open();
    await repo.limits.setEntity("key-1", ["rpm:1"]);
    const [event] = await repo.audit.list("key-1");
    const details = event?.details ?? {};
    const before = structuredClone(event);
    try {
      (details as { limits: unknown[] }).limits.length = 0;
    } catch {
      // Refused: as good as without effect.
    }
    expect((await repo.audit.list("key-1"))[0]).toEqual(before);
  });

  it("an event has no principal and no resource where the change names none (A038)", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "key-1" });
    await repo.limits.setResource("gpt-4", ["rpm:1"], { principal: "ops" });
    const [created] = await repo.audit.list("key-1");
    const [set] = await repo.audit.list("$RESOURCE:gpt-4");
    const members = ["eventId", "timestamp", "action", "entityId"];
    expect(Object.keys(created ?? {})).toEqual([...members, "details"]);
    expect(Object.keys(set ?? {})).toEqual([...members, "principal", "resource", "details"]);
  });
});
