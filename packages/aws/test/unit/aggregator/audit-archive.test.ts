import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { ArchiveSink } from "@zae-limiter/aws/aggregator/audit-archive.ts";
import { FolderArchive } from "@zae-limiter/aws/aggregator/folder-archive.ts";
import type { StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AT, bucketItem, change } from "./changes.ts";
import { CrashingStore } from "./crashing-store.ts";
import { aggregatorOver } from "./setup.ts";

/** An archive in this process, which may fail. */
class MemoryArchive implements ArchiveSink {
  readonly objects = new Map<string, Uint8Array>();
  failing = false;

  async put(key: string, body: Uint8Array): Promise<void> {
    if (this.failing) throw new Error("no such bucket");
    if (!this.objects.has(key)) this.objects.set(key, body);
  }

  get events(): Record<string, unknown>[] {
    return [...this.objects.values()].flatMap((body) =>
      gunzipSync(body)
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    );
  }
}

function auditItem(eventId: string, timestamp = "2024-01-15T14:30:00Z"): Item {
  return {
    PK: "ns1/AUDIT#key-1",
    SK: `#AUDIT#${eventId}`,
    entity_id: "key-1",
    event_id: eventId,
    timestamp,
    action: "limits_set",
    principal: null,
    resource: "gpt-4",
    details: { limits: [{ name: "rpm", capacity: 100 }] },
    ttl: 1,
  };
}

const removed = (item: Item): StreamChange => change(item, undefined);

describe("the audit archive", () => {
  test("nothing to archive, or nowhere to archive it: nothing is written (op 84)", async () => {
    const archive = new MemoryArchive();
    const { aggregator } = aggregatorOver({ archive });
    expect((await aggregator.process([])).counters).toMatchObject({ records: 0, archived: 0 });
    expect(archive.objects.size).toBe(0);
    const { aggregator: without } = aggregatorOver();
    const { counters, failedIds } = await without.process([removed(auditItem("A"))]);
    expect(counters).toMatchObject({ records: 1, archived: 0, failures: 0 });
    expect(failedIds).toEqual([]);
  });

  test("each event is one object; others are left, malformed ones are named (op 85)", async () => {
    const archive = new MemoryArchive();
    const { aggregator, lines } = aggregatorOver({ archive });
    const { action: _, ...incomplete } = auditItem("X");
    const { counters } = await aggregator.process([
      removed(auditItem("A")),
      removed(bucketItem()),
      removed(incomplete as Item),
      removed({ ...auditItem("Y"), PK: "AUDIT#without-namespace" }),
      change(undefined, auditItem("made")),
      removed(auditItem("B")),
      removed(auditItem("C")),
    ]);
    expect(counters).toMatchObject({ archived: 3, failures: 2 });
    expect(archive.objects.size).toBe(3);
    expect(archive.events.map(({ event_id }) => event_id)).toEqual(["A", "B", "C"]);
    expect(lines.filter(({ level }) => level === "warning")).toHaveLength(2);
    archive.failing = true;
    const [first, second] = [removed(auditItem("D")), removed(auditItem("E"))];
    const failed = await aggregator.process([first, second]);
    expect(failed.counters).toMatchObject({ archived: 0, failures: 1 });
    expect(failed.failedIds).toEqual([first.id]);
  });

  test("objects are named by day, namespace and event, with compact lines (op 86)", async () => {
    const archive = new MemoryArchive();
    const { aggregator } = aggregatorOver({ archive });
    await aggregator.process([
      removed(auditItem("01HM")),
      removed(auditItem("01HN", "2024-02-01T00:00:00Z")),
    ]);
    expect([...archive.objects.keys()]).toEqual([
      "audit/year=2024/month=01/day=15/namespace=ns1/audit-01HM.jsonl.gz",
      "audit/year=2024/month=02/day=01/namespace=ns1/audit-01HN.jsonl.gz",
    ]);
    const [body] = archive.objects.values();
    expect(gunzipSync(body as Uint8Array).toString()).toBe(
      '{"namespace_id":"ns1","event_id":"01HM","entity_id":"key-1","action":"limits_set",' +
        '"timestamp":"2024-01-15T14:30:00Z","principal":null,"resource":"gpt-4",' +
        '"details":{"limits":[{"name":"rpm","capacity":100}]}}\n',
    );
  });

  test("an event with an unreadable time is filed under the day it was removed", async () => {
    const archive = new MemoryArchive();
    const { aggregator } = aggregatorOver({ archive });
    await aggregator.process([removed(auditItem("A/../b", "soon"))]);
    expect([...archive.objects.keys()]).toEqual([
      expect.stringMatching(
        /^audit\/year=2024\/month=01\/day=01\/namespace=ns1\/audit-A----b\.[0-9a-f]{32}\.jsonl\.gz$/,
      ),
    ]);
  });

  test("an event id that is not safe as a name never shares the name of another event", async () => {
    const archive = new MemoryArchive();
    const { aggregator } = aggregatorOver({ archive });
    const ids = ["a-b", "a/b", "a.b", "x".repeat(64), "x".repeat(65), `${"x".repeat(65)}y`];
    await aggregator.process(ids.map((id) => removed(auditItem(id))));
    expect(archive.events.map(({ event_id }) => event_id)).toEqual(ids);
    expect(Math.max(...[...archive.objects.keys()].map(({ length }) => length))).toBeLessThan(160);
  });

  test("a tenant cannot replace an archived event of another tenant, nor one of its own", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-archive-"));
    try {
      for (const archive of [new MemoryArchive(), new FolderArchive(folder)]) {
        const { aggregator } = aggregatorOver({ archive });
        const victim = { ...auditItem("01HM"), action: "limits_deleted" };
        await aggregator.process([removed(victim)]);
        const forged = { ...auditItem("01HM"), action: "nothing_happened" };
        await aggregator.process([removed({ ...forged, PK: "ns2/AUDIT#key-1" }), removed(forged)]);
        const day = "audit/year=2024/month=01/day=15";
        const objects =
          archive instanceof MemoryArchive
            ? [...archive.objects].map(([key, body]) => [key, gunzipSync(body).toString()])
            : ["namespace=ns1", "namespace=ns2"].map((name) => {
                const key = `${day}/${name}/audit-01HM.jsonl.gz`;
                return [key, gunzipSync(readFileSync(join(folder, key))).toString()];
              });
        expect(objects).toEqual([
          [`${day}/namespace=ns1/audit-01HM.jsonl.gz`, expect.stringContaining("limits_deleted")],
          [`${day}/namespace=ns2/audit-01HM.jsonl.gz`, expect.stringContaining('"ns2"')],
        ]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("events that will be delivered again are not archived yet", async () => {
    const archive = new MemoryArchive();
    const store = new CrashingStore({ clock: () => AT });
    const { aggregator } = aggregatorOver({ archive, store });
    const used = change(undefined, bucketItem({ tc: { rpm: 1000 } }));
    const batch = [removed(auditItem("A")), used, removed(auditItem("B"))];
    store.crashAfter(0, false);
    const { failedIds } = await aggregator.process(batch);
    expect(failedIds).toEqual([used.id]);
    expect(archive.events.map(({ event_id }) => event_id)).toEqual(["A"]);
    store.restart();
    await aggregator.process(batch.slice(1));
    expect(archive.events.map(({ event_id }) => event_id)).toEqual(["A", "B"]);
  });

  test("however batches are cut and repeated, every event is archived once", async () => {
    const days = ["2024-01-15", "2024-01-16", "2024-01-17"];
    const attempt = fc.record({ size: fc.integer({ min: 1, max: 6 }), dies: fc.boolean() });
    const property = fc.asyncProperty(
      fc.array(fc.nat(days.length - 1), { minLength: 1, maxLength: 20 }),
      fc.array(attempt, { maxLength: 30 }),
      async (drawn, attempts) => {
        const records = drawn.map((day, at) =>
          removed(auditItem(`E${String(at).padStart(2, "0")}`, `${days[day]}T10:00:00Z`)),
        );
        const archive = new MemoryArchive();
        const { aggregator } = aggregatorOver({ archive });
        let checkpoint = 0;
        for (const { size, dies } of attempts) {
          await aggregator.process(records.slice(checkpoint, checkpoint + size));
          // A process dies after archiving, before it could report that.
          if (!dies) checkpoint += size;
        }
        await aggregator.process(records.slice(checkpoint));
        expect(archive.events.map(({ event_id }) => event_id).toSorted()).toEqual(
          records.map(({ before }) => before?.event_id),
        );
      },
    );
    await fc.assert(property, { numRuns: 100 });
  });

  test("a folder has whole objects only, and the same again is the same", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-archive-"));
    try {
      const { aggregator } = aggregatorOver({ archive: new FolderArchive(folder) });
      const batch = [removed(auditItem("A")), removed(auditItem("B"))];
      for (let times = 0; times < 2; times += 1) await aggregator.process(batch);
      const files = readdirSync(folder, { recursive: true }).map(String);
      const objects = files.filter((file) => file.includes("audit-"));
      const day = join("audit", "year=2024", "month=01", "day=15", "namespace=ns1");
      expect(objects.toSorted()).toEqual([
        join(day, "audit-A.jsonl.gz"),
        join(day, "audit-B.jsonl.gz"),
      ]);
      const text = gunzipSync(readFileSync(join(folder, objects.toSorted()[1] as string)));
      expect(JSON.parse(text.toString())).toMatchObject({ event_id: "B" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
