/** The commands `gateway key`, and lists of entities without keys. */

import { describe, expect, test } from "vitest";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();

interface MadeKey {
  readonly key: string;
  readonly id: string;
  readonly hint: string;
}

/** A namespace with team-a, and a function that makes keys for it. */
async function withTeam() {
  const commands = store.namespace();
  await commands.run("entity", "create", "team-a");
  const make = (...more: string[]) =>
    commands.json<MadeKey>("gateway", "key", "create", "--entity", "team-a", ...more);
  return { ...commands, make };
}

describe("gateway key create", () => {
  test("an entity that does not exist is refused, and created with --create-entity", async () => {
    const { run, json } = store.namespace();
    const create = ["gateway", "key", "create", "--entity", "team-a"];
    expect(await run(...create)).toMatchObject({
      code: 1,
      out: "",
      err: 'zae-limiter: There is no entity "team-a". Check the id, or pass --create-entity to create it\n',
    });
    expect(await json("gateway", "key", "list")).toEqual({ keys: [] });
    expect(await run("entity", "show", "team-a")).toMatchObject({ code: 1 });
    expect(await run(...create, "--create-entity")).toMatchObject({ code: 0 });
    expect(await run("entity", "show", "team-a")).toMatchObject({ code: 0 });
    // It exists now, with or without the flag.
    expect(await run(...create)).toMatchObject({ code: 0 });
    expect(await run(...create, "--create-entity")).toMatchObject({ code: 0 });
  });

  test("a key has a name, which lists show", async () => {
    const { make, json, run } = await withTeam();
    const named = await make("--display-name", "build server", "--expires", "90d");
    expect(named).toMatchObject({ name: "build server", entity_id: "team-a" });
    expect(await make()).toMatchObject({ name: null });
    const { keys } = await json<{ keys: object[] }>("gateway", "key", "list");
    expect(keys).toContainEqual(expect.objectContaining({ id: named.id, name: "build server" }));
    const { out } = await run("gateway", "key", "list");
    expect(out).toMatch(/key +name +entity +expires +id/);
    expect(out).toContain("build server");
    expect(JSON.stringify(keys) + out).not.toContain(named.key);
  });

  test("a key given as a name is refused, and not repeated", async () => {
    const { make, run } = await withTeam();
    const { key } = await make();
    const create = ["gateway", "key", "create", "--entity", "team-a", "--display-name", key];
    for (const more of [[], ["--json"]]) {
      const { code, out, err } = await run(...create, ...more);
      expect(code).not.toBe(0);
      expect(out + err).toContain("begins like a key");
      expect(out + err).not.toContain(key.slice(5));
    }
  });
});

describe("gateway key revoke", () => {
  test.each([
    ["the key itself", ({ key }: MadeKey) => key],
    ["its id", ({ id }: MadeKey) => id],
    ["its name", () => "laptop"],
    ["its beginning", ({ hint }: MadeKey) => hint],
    ["its beginning as the list shows it", ({ hint }: MadeKey) => `${hint}…`],
    ["its beginning with three dots", ({ hint }: MadeKey) => `${hint}...`],
  ])("a key is revoked by %s", async (_, textOf) => {
    const { make, json } = await withTeam();
    const [made, other] = [
      await make("--display-name", "laptop"),
      await make("--display-name", "server"),
    ];
    expect(await json("gateway", "key", "revoke", textOf(made))).toEqual({ id: made.id });
    const { keys } = await json<{ keys: object[] }>("gateway", "key", "list");
    expect(keys).toEqual([expect.objectContaining({ id: other.id })]);
  });

  test("a name of several keys is refused with all of them, and revokes none", async () => {
    const { make, json, run } = await withTeam();
    const made = [await make("--display-name", "laptop"), await make("--display-name", "laptop")];
    const { code, err } = await run("gateway", "key", "revoke", "laptop");
    expect(code).toBe(1);
    expect(err).toContain("2 keys match. Revoke one of them by its id: ");
    for (const { id, hint, key } of made) {
      expect(err).toContain(`${id} (${hint}…, laptop, counts for team-a)`);
      expect(err).not.toContain(key);
    }
    const { keys } = await json<{ keys: object[] }>("gateway", "key", "list");
    expect(keys).toHaveLength(2);
  });

  test("an unknown key is refused, and neither repeated nor taken for an entity", async () => {
    const { make, run } = await withTeam();
    const { key } = await make();
    const wrong = `${key.slice(0, -1)}${key.at(-1) === "A" ? "B" : "A"}`;
    for (const text of [wrong, "team-a", "zael-", "laptop", ""]) {
      const { code, err } = await run("gateway", "key", "revoke", text);
      expect(code).toBe(1);
      expect(err).toContain("There is no such key; `gateway key list` shows all of them");
      expect(err).not.toContain(wrong);
    }
  });
});

describe("entity list", () => {
  test("keys of a gateway are left out, also across pages, unless their prefix is given", async () => {
    const { make, json, run } = await withTeam();
    const made = [await make(), await make(), await make()];
    await run("entity", "create", "fleet");
    await run("entity", "create", "zebra");
    const ids = async (...more: string[]) =>
      (await json<{ entity_ids: string[] }>("entity", "list", ...more)).entity_ids;
    expect(await ids()).toEqual(["fleet", "team-a", "zebra"]);
    expect(await ids("--limit", "2")).toEqual(["fleet", "team-a"]);
    expect(await ids("--prefix", "team")).toEqual(["team-a"]);
    expect((await ids("--prefix", "gateway-key:")).sort()).toEqual(made.map(({ id }) => id).sort());
    const { out, err } = await run("entity", "list");
    expect(out + err).not.toContain("gateway-key");
  });

  test("a store with nothing but keys of deleted entities has no entities", async () => {
    const { make, run } = await withTeam();
    await make();
    await run("entity", "delete", "team-a", "--yes");
    const { out } = await run("entity", "list");
    expect(out).toContain("There are no entities");
  });
});
