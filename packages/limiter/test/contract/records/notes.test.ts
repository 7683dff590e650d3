/** Notes: values by name that processes share, with compare-and-set and an expiry. */

import { noteKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describeStores, newName } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const notesOf = (repository: Repository) => repository[INTERNALS].notes;
const DAY_MS = 86_400_000;

describeStores("notes", (store) => {
  it("a note is read as it was written, and only in its own namespace", async () => {
    const repo = await store.open();
    const other = await store.open();
    const value = { b: [1, "ü", null, { c: true }], a: { z: 1e9, y: "" } };
    await notesOf(repo).set("models/https://api.test:443/v1", value);
    expect(await notesOf(repo).get("models/https://api.test:443/v1")).toEqual(value);
    expect(await notesOf(repo).get("models")).toBeUndefined();
    expect(await notesOf(other).get("models/https://api.test:443/v1")).toBeUndefined();
    await notesOf(repo).set("models/https://api.test:443/v1", "text");
    expect(await notesOf(repo).get("models/https://api.test:443/v1")).toBe("text");
  });

  it("of many that create a note at once exactly one does, and its value stays", async () => {
    const repo = await store.open();
    const created = await Promise.all(
      Array.from({ length: 8 }, (_, at) => notesOf(repo).create("secret", { at })),
    );
    expect(created.filter(Boolean)).toHaveLength(1);
    expect(await notesOf(repo).get("secret")).toEqual({ at: created.indexOf(true) });
  });

  it("of many that replace a note at once exactly one does", async () => {
    const repo = await store.open();
    await notesOf(repo).set("job", { state: "held", held: { tpm: 5, rpm: 1 } });
    const replaced = await Promise.all(
      Array.from({ length: 8 }, (_, by) =>
        // Equal whatever the order of its members.
        notesOf(repo).replace("job", { held: { rpm: 1, tpm: 5 }, state: "held" }, { by }),
      ),
    );
    expect(replaced.filter(Boolean)).toHaveLength(1);
    expect(await notesOf(repo).get("job")).toEqual({ by: replaced.indexOf(true) });
    expect(await notesOf(repo).replace("job", { state: "held" }, 1)).toBe(false);
    expect(await notesOf(repo).replace("absent", null, 1)).toBe(false);
    expect(await notesOf(repo).get("absent")).toBeUndefined();
  });

  it("a note whose time is over is absent for every reader and writer", async () => {
    let nowMs = Math.ceil((Date.now() + DAY_MS) / 1000) * 1000;
    const repo = await store.open({ clock: () => nowMs });
    const notes = notesOf(repo);
    const expiresMs = nowMs + 9500;
    await notes.set("a", 1, { expiresMs });
    await notes.set("b", 2, { expiresMs });
    nowMs += 9999;
    expect(await notes.get("a")).toBe(1);
    expect(await notes.create("a", 3)).toBe(false);
    nowMs += 1;
    expect(await notes.get("a")).toBeUndefined();
    expect(await notes.replace("a", 1, 3)).toBe(false);
    const created = await Promise.all([notes.create("a", 4), notes.create("a", 4)]);
    expect(created.sort()).toEqual([false, true]);
    expect(await notes.get("a")).toBe(4);
    await notes.set("b", 5);
    nowMs += 1000 * DAY_MS;
    expect([await notes.get("a"), await notes.get("b")]).toEqual([4, 5]);
  });

  it("a purge of the namespace removes its notes, and a deleted namespace gets no new ones", async () => {
    const repo = await store.open();
    const name = newName();
    const { [name]: id = "" } = await repo.namespaces.register(name);
    const doomed = await repo.namespace(name);
    await notesOf(doomed).set("kept", 1);
    await repo.namespaces.delete(name);
    await expect(notesOf(doomed).set("late", 1)).rejects.toMatchObject({ state: "deleted" });
    await expect(notesOf(doomed).create("late", 1)).rejects.toMatchObject({ state: "deleted" });
    await repo.namespaces.purge(id);
    expect(await store.items.get(noteKey(id, "kept"), { consistent: true })).toBeUndefined();
    expect(await notesOf(doomed).replace("kept", 1, 2)).toBe(false);
    expect(await store.itemsOf(id, "GSI4")).toEqual([]);
  });

  it("notes appear in no list of entities, in no audit log and in no usage", async () => {
    const repo = await store.open();
    await notesOf(repo).set("ENTITY", { secret: "s3cret" });
    expect((await repo.entities.list()).entities).toEqual([]);
    expect(await repo.audit.list("ENTITY")).toEqual([]);
    const { snapshots } = await repo.usage.snapshots({ resource: "ENTITY" });
    expect(snapshots).toEqual([]);
  });

  it("a note that another writer has damaged is absent, and can be set again", async () => {
    const repo = await store.open();
    for (const damage of [{ value: "{" }, { value: 5 }, {}]) {
      await store.items.put({ ...noteKey(repo.namespaceId, "a"), ...damage });
      expect(await notesOf(repo).get("a")).toBeUndefined();
    }
    await notesOf(repo).set("a", 1);
    expect(await notesOf(repo).get("a")).toBe(1);
  });

  it("a note needs a name that is short and fit for a key", async () => {
    const notes = notesOf(await store.open());
    for (const name of ["", "a#b", "a b", "x".repeat(257)]) {
      await expect(notes.set(name, 1)).rejects.toMatchObject({ field: "name" });
      await expect(notes.get(name)).rejects.toMatchObject({ field: "name" });
    }
    await notes.set("x".repeat(256), 1);
  });

  it("a note larger than an item may be is refused on every store", async () => {
    const repo = await store.open();
    const refused = notesOf(repo).set("large", "x".repeat(300_000));
    await expect(refused).rejects.toMatchObject({ field: "value" });
    await notesOf(repo).set("large", "x".repeat(299_000));
    expect(await notesOf(repo).get("large")).toHaveLength(299_000);
  });
});
