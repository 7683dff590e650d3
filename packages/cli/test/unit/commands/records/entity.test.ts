/** `entity`, in process; its limits are in limit-commands.test.ts. */

import { entity } from "@zae-limiter/cli/commands/records/entity.ts";
import { describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const NOON_MS = Date.parse("2030-01-01T12:00:00Z");
const clock = () => NOON_MS;

describe("entity create and show", () => {
  test("entity create and show have a name, a parent, cascade and metadata", async () => {
    const { run } = store.namespace({ clock });
    expect(await run("entity", "create", "acme")).toMatchObject({
      code: 0,
      out: "Created acme\n  Parent   (none)\n  Cascade  no\n  Created  2030-01-01T12:00:00Z\n",
      err: "",
    });
    const details = ["--display-name", "Web key", "--parent", "acme", "--cascade"];
    const created = await run("entity", "create", "web", ...details, "--metadata", '{"tier":1}');
    expect(created).toMatchObject({ code: 0, err: "" });
    const shown = await run("entity", "show", "web");
    expect(shown).toMatchObject({ code: 0, err: "" });
    expect(shown.out.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
      ["web"],
      ["Name", "Web key"],
      ["Parent", "acme"],
      ["Cascade", "yes"],
      ["Created", "2030-01-01T12:00:00Z"],
      ["Metadata", '{"tier":1}'],
      [""],
    ]);
  });

  test("entity create and show print the same as JSON", async () => {
    const { run, json } = store.namespace({ clock });
    await run("entity", "create", "p");
    const created = await json("entity", "create", "key-1", "--parent", "p", "--no-cascade");
    expectShape(shapeOf(entity, "create"), created);
    expect(created).toEqual({
      id: "key-1",
      name: "key-1",
      parent_id: "p",
      cascade: false,
      metadata: {},
      created_at: "2030-01-01T12:00:00Z",
    });
    const shown = await json("entity", "show", "key-1");
    expectShape(shapeOf(entity, "show"), shown);
    expect(shown).toEqual(created);
  });

  test("a parent that does not exist is refused, unless it may come later", async () => {
    const { run } = store.namespace();
    const create = ["entity", "create", "key-1", "--parent", "typo"];
    const { code, err } = await run(...create);
    expect(code).toBe(1);
    expect(err).toContain('There is no entity "typo" to be the parent');
    expect(err).toContain("--allow-missing-parent");
    const { err: json } = await run(...create, "--json");
    expect(JSON.parse(json)).toMatchObject({ error: "ZAEL_ENTITY_NOT_FOUND" });
    expect((await run("entity", "show", "key-1")).code).toBe(1);
    expect(await run(...create, "--allow-missing-parent")).toMatchObject({ code: 0, err: "" });
  });

  test("a display name may have spaces", async () => {
    const { run, json } = store.namespace();
    await run("entity", "create", "tenant", "--display-name", "Tenant GmbH & Co. KG");
    expect(await json("entity", "show", "tenant")).toMatchObject({ name: "Tenant GmbH & Co. KG" });
    expect((await run("entity", "list")).out).toContain("Tenant GmbH & Co. KG");
  });

  test("a whole list has entities that were never created, with limits, buckets or usage", async () => {
    const { run, json } = store.namespace();
    const ids = async (...more: string[]) =>
      (await json<{ entity_ids: string[] }>("entity", "list", ...more)).entity_ids;
    await run("system", "set-limits", "-l", "rpm:5");
    await run("entity", "create", "zebra");
    await run("entity", "set-limits", "limited", "-l", "rpm:9");
    await run("acquire", "used", "gpt-4", "-c", "rpm=1");
    expect(await ids()).toEqual(["zebra", "limited", "used"]);
    expect(await ids("--prefix", "u")).toEqual(["used"]);
    expect(await ids("--limit", "5")).toEqual(["zebra"]);
  });

  test("an entity that exists, has a bad id or is missing is refused", async () => {
    const { run } = store.namespace();
    await run("entity", "create", "key-1");
    expect(await run("entity", "create", "key-1")).toMatchObject({
      code: 1,
      out: "",
      err:
        'zae-limiter: Entity "key-1" already exists. ' +
        "Show it with: zae-limiter entity show key-1\n",
    });
    expect(await run("entity", "create", "a#b")).toMatchObject({ code: 1, out: "" });
    expect(await run("entity", "show", "missing")).toMatchObject({
      code: 1,
      out: "",
      err:
        'zae-limiter: There is no entity "missing". ' +
        "Create it with: zae-limiter entity create missing\n",
    });
    for (const metadata of ["[1]", "gold", "null"]) {
      const { code, err } = await run("entity", "create", "key-2", "--metadata", metadata);
      expect(code).toBe(2);
      expect(err).toContain('expected a JSON object like {"tier":"gold"}');
    }
  });
});

describe("entity delete", () => {
  test("entity delete removes an entity with its limits", async () => {
    const { run, json, under } = store.namespace();
    await run("entity", "create", "key-1");
    await run("entity", "set-limits", "key-1", "-l", "rpm:1");
    const declined = await under({ answers: [false] }, "entity", "delete", "key-1");
    expect(declined).toMatchObject({
      code: 1,
      out: "",
      err: "zae-limiter: Aborted: nothing was deleted\n",
      questions: ["Delete key-1 with its limits, balances and usage?"],
    });
    expect((await run("entity", "show", "key-1")).code).toBe(0);
    const gone = await run("entity", "delete", "key-1", "--yes", "--principal", "ops");
    expect(gone).toMatchObject({ code: 0, out: "Deleted key-1\n", err: "" });
    expect((await run("entity", "show", "key-1")).code).toBe(1);
    expect(await json("entity", "get-limits", "key-1")).toMatchObject({ limits: [] });
    const again = await json("entity", "delete", "key-1", "--yes");
    expectShape(shapeOf(entity, "delete"), again);
    expect(again).toEqual({ id: "key-1", deleted: false });
    const { out } = await run("entity", "delete", "key-1", "--yes");
    expect(out).toBe("There was no entity key-1; its leftover data was deleted\n");
  });
});

describe("entity children", () => {
  test("entity children lists those that belong to an entity", async () => {
    const { run, json } = store.namespace({ clock });
    await run("entity", "create", "acme");
    await run("entity", "create", "web", "--parent", "acme", "--cascade");
    await run("entity", "create", "batch", "--parent", "acme", "--display-name", "Night batch");
    const { code, out } = await run("entity", "children", "acme");
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["ENTITY", "NAME", "CASCADE"],
      ["batch", "Night batch", "no"],
      ["web", "web", "yes"],
      [""],
    ]);
    const children = await json("entity", "children", "acme");
    expectShape(shapeOf(entity, "children"), children);
    expect(children).toMatchObject({ id: "acme", children: [{ id: "batch" }, { id: "web" }] });
    expect((await run("entity", "children", "web")).out).toBe("web has no children\n");
    expect((await run("entity", "children", "#")).code).toBe(1);
  });
});

describe("entity list and list-resources", () => {
  test("entity list lists those with limits of their own, in pages of --limit with --cursor", async () => {
    const { run, json } = store.namespace();
    for (const id of ["c", "a", "b"]) {
      await run("entity", "set-limits", id, "-r", "gpt-4", "-l", "rpm:1");
    }
    await run("entity", "set-limits", "d", "-l", "rpm:1");
    const query = ["entity", "list", "--with-custom-limits"];
    expect(await run(...query, "gpt-4")).toMatchObject({ code: 0, out: "a\nb\nc\n", err: "" });
    expect((await run(...query, "_default_")).out).toBe("d\n");
    const page = await json<{ cursor: string }>(...query, "gpt-4", "--limit", "2");
    expectShape(shapeOf(entity, "list"), page);
    expect(page).toMatchObject({ resource: "gpt-4", entity_ids: ["a", "b"] });
    const text = await run(...query, "gpt-4", "-l", "2");
    expect(text).toMatchObject({
      out: "a\nb\n",
      err: `There are more; continue with --cursor ${page.cursor}\n`,
    });
    const rest = await json(...query, "gpt-4", "--limit", "2", "--cursor", page.cursor);
    expect(rest).toEqual({ resource: "gpt-4", entity_ids: ["c"], entities: [], cursor: null });
    expect((await run(...query, "gpt-3")).out).toBe("No entity has limits of its own for gpt-3\n");
    expect(await run(...query, "gpt-4", "--prefix", "a")).toMatchObject({ code: 2, out: "" });
    expect(await run(...query, "gpt-4", "--cursor", "nonsense")).toMatchObject({ code: 1 });
    const resources = await json("entity", "list-resources");
    expectShape(shapeOf(entity, "list-resources"), resources);
    expect(resources).toEqual({ resources: ["_default_", "gpt-4"] });
    expect((await run("entity", "list-resources")).out).toBe("_default_\ngpt-4\n");
  });

  test("entity list lists all that were created, by id, and by what ids begin with", async () => {
    const { run, json } = store.namespace({ clock });
    await run("system", "set-limits", "-l", "rpm:1");
    expect((await run("entity", "list")).out).toMatch(/^There are no entities\. Create one/);
    await run("entity", "create", "acme", "--display-name", "Acme");
    await run("entity", "create", "key-2", "--parent", "acme", "--cascade");
    await run("entity", "create", "key-1");
    const { out, err } = await run("entity", "list");
    expect(
      out
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ["ENTITY", "NAME", "PARENT", "CASCADE", "CREATED"],
      ["acme", "Acme", "-", "no", "2030-01-01T12:00:00Z"],
      ["key-1", "-", "-", "no", "2030-01-01T12:00:00Z"],
      ["key-2", "-", "acme", "yes", "2030-01-01T12:00:00Z"],
    ]);
    expect(err).toBe("");
    const page = await json<{ cursor: string }>("entity", "list", "--prefix", "key-", "-l", "1");
    expectShape(shapeOf(entity, "list"), page);
    expect(page).toMatchObject({
      resource: null,
      entity_ids: ["key-1"],
      entities: [{ id: "key-1" }],
    });
    const rest = ["entity", "list", "--prefix", "key-", "--cursor", page.cursor];
    expect(await json(...rest)).toMatchObject({ entity_ids: ["key-2"], cursor: null });
  });

  test("entity list and list-resources say so when there are none", async () => {
    const { run } = store.namespace();
    await run("entity", "create", "a");
    expect((await run("entity", "list-resources")).out).toBe("No entity has limits of its own\n");
    expect((await run("entity", "list-resources", "-N", "missing")).code).toBe(1);
  });
});
