/** Operations 21 to 35 with the built binary; 36 to 50 belong to `local` and `limits`. */

import { type CliStore, describeCliStores } from "@zae-limiter/test-support/binary.ts";
import { usageItem } from "@zae-limiter/test-support/usage-item.ts";
import { expect, test } from "vitest";

const SILENT = { code: 0, err: "" };

describeCliStores("the command line", (store) => {
  const stored = async (name: string) => {
    const { limits } = await store.repository.limits.getSystem();
    return limits.find((limit) => limit.name === name);
  };

  test("limits are read with rate, period and burst (op 21, 22, 23)", async () => {
    const texts = [
      "tpm:10000",
      "burst:10000:15000",
      "rps:50/sec",
      "tph:100000/hour",
      "rpd:1000000/day",
      "req:100/5min",
    ];
    const options = texts.flatMap((text) => ["-l", text]);
    expect(await store.run("system", "set-defaults", ...options)).toMatchObject(SILENT);
    const perMinute = { refillAmount: 10_000, refillPeriodSeconds: 60 };
    expect(await stored("tpm")).toMatchObject({ capacity: 10_000, ...perMinute });
    expect(await stored("burst")).toMatchObject({ capacity: 15_000, ...perMinute });
    expect((await stored("rps"))?.refillPeriodSeconds).toBe(1);
    expect((await stored("tph"))?.refillPeriodSeconds).toBe(3600);
    expect((await stored("rpd"))?.refillPeriodSeconds).toBe(86_400);
    expect((await stored("req"))?.refillPeriodSeconds).toBe(300);
  });

  test("text that is not a limit is refused in one line, each for its reason (op 24)", async () => {
    const refused = await Promise.all(
      ["invalid", "tpm:abc", "rpm:100/fortnight", "a:1:2:3"].map((text) =>
        store.run("system", "set-defaults", "-l", text),
      ),
    );
    for (const { code, out, err } of refused) {
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(/^zae-limiter: [^\n]+\n$/);
    }
    expect(refused[0]?.err).toContain("expected name:rate");
    expect(refused[1]?.err).toContain("the rate must be a whole number");
    expect(refused[2]?.err).toContain("the period must be sec, min, hour or day");
    expect(refused[3]?.err).toContain("expected name:rate");
    expect((await store.repository.limits.getSystem()).limits).toEqual([]);
  });

  test("limits are shown with separators, period and burst (op 25)", async () => {
    await store.repository.limits.setSystem(["tpm:10000", "burst:10000:15000", "rpm:100/5min"]);
    const { out } = await store.run("system", "get-defaults");
    expect(out.split("\n").slice(1, 4).sort()).toEqual([
      "  burst: 10,000/min (burst: 15,000)",
      "  rpm: 100/5min",
      "  tpm: 10,000/min",
    ]);
  });

  test("the limits of a resource are counted and stored (op 26)", async () => {
    const limits = ["-l", "rpm:1000/min", "-l", "tph:50000/hour"];
    const { code, out } = await store.run("resource", "set-defaults", "gpt-4", ...limits);
    expect(code).toBe(0);
    expect(out).toContain("Set 2 limits of gpt-4");
    expect(await store.repository.limits.getResource("gpt-4")).toMatchObject([
      { name: "rpm", refillPeriodSeconds: 60 },
      { name: "tph", refillPeriodSeconds: 3600 },
    ]);
  });

  test("usage of neither an entity nor a resource is that of the namespace (op 27)", async () => {
    const commands = ["list", "summary", "top"];
    const ran = await Promise.all(commands.map((name) => store.run("usage", name)));
    for (const answer of ran) {
      expect(answer).toMatchObject({ code: 0, out: "No usage was counted\n", err: "" });
    }
  });

  test("a full page of audit events shows how to read the next one (op 28)", async () => {
    const principal = `${"long-".repeat(20)}principal`;
    await store.repository.entities.create({ id: "key-1", principal });
    for (let times = 0; times < 2; times += 1) {
      await store.repository.limits.setEntity("key-1", ["rpm:1"], { principal });
      await store.repository.limits.deleteEntity("key-1");
    }
    const { code, out, err } = await store.run("audit", "list", "-e", "key-1", "-l", "5");
    expect(code).toBe(0);
    const rows = out
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/ {2,}/));
    expect(rows.map((row) => row.slice(1))).toEqual([
      ["limits_deleted", "-", "_default_", "-"],
      ["limits_set", principal, "_default_", "rpm:1/min"],
      ["limits_deleted", "-", "_default_", "-"],
      ["limits_set", principal, "_default_", "rpm:1/min"],
      ["entity_created", principal, "-", "name=key-1"],
    ]);
    expect(err).toMatch(/continue with --start-event-id [0-9A-Z]{26}\n$/);
  });

  test("where nothing can draw, a plot is a table (op 29)", async () => {
    const start = "2026-11-15T10:00:00Z";
    const seed = { entity: "key-1", window: "hourly", start, events: 3 } as const;
    const counters = { rpm: 3, tpm: 1200 };
    await store.put([usageItem(store.repository.namespaceId, { ...seed, counters })]);
    const query = ["usage", "list", "-e", "key-1"];
    const drawn = await store.run(...query, "--plot");
    expect(drawn).toMatchObject(SILENT);
    expect(drawn.out).toMatch(/^rpm, hourly\n/);
    const ofResource = await store.run("usage", "list", "-r", "gpt-4", "--plot");
    expect(ofResource).toEqual(drawn);
  });

  test("limits of an entity without a resource are for all resources (op 30)", async () => {
    const set = await store.json("entity", "set-limits", "u", "-l", "rpm:1");
    expect(set).toMatchObject({ entity_id: "u", resource: "_default_" });
    expect(await store.repository.limits.getEntity("u", { resource: "_default_" })).toHaveLength(1);
  });

  test("a list of entities has all of them, or those with limits of a resource (op 31)", async () => {
    const { entities, limits } = store.repository;
    await entities.create({ id: "key-1" });
    await entities.create({ id: "key-2" });
    await limits.setEntity("key-2", ["rpm:1"], { resource: "gpt-4" });
    const all = await store.run("entity", "list");
    expect(all.code).toBe(0);
    expect(all.out).toMatch(/key-1[\s\S]*key-2/);
    const some = await store.run("entity", "list", "--with-custom-limits", "gpt-4");
    expect(some.out).toContain("key-2");
    expect(some.out).not.toContain("key-1");
  });

  test("namespaces are registered and counted; the reserved one is refused (op 32)", async () => {
    const names = [`${store.namespace}-a`, `${store.namespace}-b`];
    const { code, out } = await store.run("namespace", "register", ...names);
    expect(code).toBe(0);
    expect(out).toContain("2 namespaces");
    for (const name of names) {
      const id = (await store.repository.namespaces.get(name))?.namespaceId;
      expect(out).toContain(`${name}: ${id}`);
    }
    expect(await store.run("namespace", "register", "_")).toMatchObject({ code: 1, out: "" });
  });

  test("a namespace is deleted, an orphan, and recovered; its neighbour stays (op 33)", async () => {
    const [a, b] = [`${store.namespace}-a`, `${store.namespace}-b`];
    const ids = await store.repository.namespaces.register(a, b);
    const id = ids[a] as string;
    expect(await store.run("namespace", "delete", a, "--yes")).toMatchObject(SILENT);
    expect(await names(store)).toEqual([b]);
    const { orphans } = await store.json<{ orphans: object[] }>("namespace", "orphans");
    expect(orphans).toContainEqual(expect.objectContaining({ namespace_id: id, name: a }));
    expect((await store.run("namespace", "recover", id)).out).toBe(`Recovered ${a}: ${id}\n`);
    expect(await names(store)).toEqual([a, b]);
    expect((await store.repository.namespaces.get(b))?.namespaceId).toBe(ids[b]);
  });

  test("an active namespace is not purged; an unknown id is no failure (op 34)", async () => {
    const { namespaceId, namespaces } = store.repository;
    const active = await store.run("namespace", "purge", namespaceId, "--yes");
    expect(active).toMatchObject({ code: 1, out: "" });
    expect(active.err).toContain("is active; delete it before you purge it");
    const unknown = await store.run("namespace", "purge", "unknown-id", "--yes");
    expect(unknown).toMatchObject(SILENT);
    const ids = await namespaces.register(`${store.namespace}-a`);
    const id = Object.values(ids)[0] as string;
    await (await store.repository.namespace(`${store.namespace}-a`)).entities.create({ id: "x" });
    await namespaces.delete(`${store.namespace}-a`);
    expect(await store.json("namespace", "purge", id, "-y")).toEqual({
      namespace_id: id,
      records_deleted: 2,
    });
    expect((await namespaces.orphans()).map(({ namespaceId: each }) => each)).not.toContain(id);
  });

  test("a declined question deletes nothing, and is no failure (op 35)", async () => {
    await store.repository.limits.setResource("gpt-4", ["rpm:1"]);
    const command = ["resource", "delete-defaults", "gpt-4"];
    // Nothing is connected to before the answer: there is nothing at this address.
    const env = { ZAEL_URL: "dynamodb://nowhere?endpoint=http://127.0.0.1:1" };
    const declined = await store.run(...command, { input: "n\n", env });
    expect(declined).toMatchObject({ code: 0, out: "Cancelled: nothing was deleted\n" });
    expect(declined.err).toContain("Delete the limits of gpt-4? [y/N]");
    const silent = await store.run(...command);
    expect(silent).toMatchObject({ code: 2, out: "" });
    expect(await store.repository.limits.getResource("gpt-4")).toHaveLength(1);
    expect(await store.run(...command, { input: "y\n" })).toMatchObject({ code: 0 });
    expect(await store.repository.limits.getResource("gpt-4")).toEqual([]);
  });

  test("a wrong name of a namespace registers nothing, by reading or by acquiring (W16)", async () => {
    const typo = `${store.namespace}-typo`;
    const commands = [
      ["entity", "show", "key-1"],
      ["peek", "key-1", "gpt-4"],
      ["acquire", "key-1", "gpt-4", "-c", "rpm=1"],
      ["system", "delete-defaults", "-y"],
    ];
    const ran = await Promise.all(commands.map((words) => store.run(...words, "-N", typo)));
    for (const { code, err } of ran) {
      expect(code).toBe(1);
      expect(err).toContain(`zae-limiter namespace register ${typo}`);
    }
    expect(await store.repository.namespaces.get(typo)).toBeUndefined();
  });

  test("acquire takes, is refused with 3, and peek sees it without a trace", async () => {
    await store.repository.limits.setSystem(["rpm:2/day"]);
    const acquire = ["acquire", "key-1", "gpt-4", "-c", "rpm=2"];
    expect(await store.run(...acquire)).toMatchObject(SILENT);
    const { code, out } = await store.run(...acquire);
    expect(code).toBe(3);
    expect(out).toMatch(/^Refused: key-1 needs 2 rpm, has 0; try again in (1 d|23 h 59 min)\n$/);
    expect(await store.json("peek", "key-1", "gpt-4")).toMatchObject({
      limits: [{ entity_id: "key-1", limit_name: "rpm", available: 0 }],
    });
  });
});

/** The namespaces of this test, apart from its first. */
async function names(store: CliStore): Promise<string[]> {
  const { namespaces } = await store.json<{ namespaces: { name: string }[] }>("namespace", "list");
  return namespaces
    .map(({ name }) => name)
    .filter((name) => name.startsWith(`${store.namespace}-`));
}
