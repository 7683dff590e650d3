/** `system`, `resource` and the limits of `entity`, in process; see captured.ts for why. */

import { entity } from "@zae-limiter/cli/commands/records/entity.ts";
import { resource } from "@zae-limiter/cli/commands/records/resource.ts";
import { system } from "@zae-limiter/cli/commands/records/system.ts";
import { describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();

/** The three commands of each level. */
const LEVELS = [
  {
    level: "system",
    group: system,
    names: ["set-limits", "get-limits", "delete-limits"],
    target: [],
    shown: "the system",
    owner: {},
  },
  {
    level: "resource",
    group: resource,
    names: ["set-limits", "get-limits", "delete-limits"],
    target: ["gpt-4"],
    shown: "gpt-4",
    owner: { resource: "gpt-4" },
  },
  {
    level: "entity",
    group: entity,
    names: ["set-limits", "get-limits", "delete-limits"],
    target: ["key-1", "-r", "gpt-4"],
    shown: "key-1 on gpt-4",
    owner: { entity_id: "key-1", resource: "gpt-4" },
  },
  {
    level: "entity",
    group: entity,
    names: ["set-children-limits", "get-children-limits", "delete-children-limits"],
    target: ["team-a", "-r", "gpt-4"],
    shown: "children of team-a on gpt-4",
    owner: { entity_id: "team-a", resource: "gpt-4" },
  },
] as const;

const LIMITS = [
  { name: "rpm", capacity: 100, refill_amount: 100, refill_period_seconds: 60 },
  { name: "tpm", capacity: 15_000, refill_amount: 10_000, refill_period_seconds: 60 },
];

describe.each(LEVELS)(
  "limits of $shown",
  ({ level, group, names, target, shown: ownerText, owner }) => {
    const [set, get, remove] = names;
    const limits = ["-l", "rpm:100", "-l", "tpm:10000/min:15000"];

    test("limits of a level are set, shown and deleted", async () => {
      const { run } = store.namespace();
      const lines = "  rpm: 100/min\n  tpm: 10,000/min (burst: 15,000)\n";
      expect(await run(level, set, ...target, ...limits)).toMatchObject({
        code: 0,
        out: `Set 2 limits of ${ownerText}:\n${lines}`,
        err: "",
      });
      const shown = { code: 0, out: `Limits of ${ownerText}:\n${lines}`, err: "" };
      expect(await run(level, get, ...target)).toMatchObject(shown);
      expect(await run(level, remove, ...target, "--yes")).toMatchObject({
        code: 0,
        out: `Deleted the limits of ${ownerText}\n`,
      });
      expect(await run(level, get, ...target)).toMatchObject({
        code: 0,
        out: `No limits are stored for ${ownerText}\n`,
      });
      expect(await run(level, remove, ...target, "-y")).toMatchObject({
        code: 0,
        out: `No limits were stored for ${ownerText}\n`,
      });
    });

    test("a limit of another kind replaces one of a level only with --replace-kind", async () => {
      const { run, json } = store.namespace();
      await run(level, set, ...target, "-l", "req:100/month");
      const refused = await run(level, set, ...target, "-l", "req:100/min");
      expect(refused.code).toBe(1);
      expect(refused.err).toContain("--replace-kind");
      const done = await run(level, set, ...target, "-l", "req:100/min", "--replace-kind");
      expect(done).toMatchObject({ code: 0 });
      const stored = await json<{ limits: { name: string }[] }>(level, get, ...target);
      expect(stored.limits).toMatchObject([{ name: "req", refill_period_seconds: 60 }]);
    });

    test("limits of a level are JSON for programs", async () => {
      const { json } = store.namespace();
      const stored = await json(level, set, ...target, ...limits);
      expect(stored).toMatchObject({ ...owner, limits: LIMITS });
      expectShape(shapeOf(group, set), stored);
      const shown = await json(level, get, ...target);
      expect({ ...(shown as object), warnings: [] }).toMatchObject(stored as object);
      expectShape(shapeOf(group, get), shown);
      const deleted = await json(level, remove, ...target, "--yes");
      expect(deleted).toEqual({ ...owner, deleted: true });
      expectShape(shapeOf(group, remove), deleted);
      expect(await json(level, remove, ...target, "--yes")).toEqual({ ...owner, deleted: false });
    });

    test("limits of a level stay when the question is declined, and when stdin is not a terminal", async () => {
      const { run, under } = store.namespace();
      await run(level, set, ...target, ...limits);
      const declined = await under({ answers: [false] }, level, remove, ...target);
      expect(declined).toMatchObject({
        code: 0,
        out: "Cancelled: nothing was deleted\n",
        questions: [`Delete the limits of ${ownerText}?`],
      });
      const unheard = await run(level, remove, ...target);
      expect(unheard).toMatchObject({ code: 2, out: "" });
      expect(unheard.err).toContain("Pass --yes");
      expect((await run(level, get, ...target)).out).toContain("rpm: 100/min");
      const agreed = await under({ answers: [true] }, level, remove, ...target);
      expect(agreed.out).toBe(`Deleted the limits of ${ownerText}\n`);
    });

    test.each([
      ["invalid", "expected name:rate"],
      ["tpm:abc", "the rate must be a whole number"],
      ["rpm:100/fortnight", "the period must be sec, min, hour or day"],
      ["req:100/week:200", "req:100/week:200"],
      ["req:100/m", "m may be a minute or a month: which?"],
      ["rpm:0", 'the rate must be positive, got "0" in "rpm:0"'],
      ["wcu:5", "wcu"],
    ])("a limit written as %j is refused", async (limit, reason) => {
      const { run } = store.namespace();
      const { code, out, err } = await run(level, set, ...target, "-l", limit);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(/^zae-limiter: [^\n]+\n$/);
      expect(err).toContain(reason);
    });

    test("limits of a level have to be given, and each name once", async () => {
      const { run } = store.namespace();
      expect(await run(level, set, ...target)).toMatchObject({ code: 2, out: "" });
      const twice = await run(level, set, ...target, "-l", "rpm:1", "-l", "rpm:2");
      expect(twice).toMatchObject({ code: 1, out: "" });
      expect(twice.err).toContain('the limit "rpm" is given twice');
    });

    test("limits of a level have the principal of each change in the audit log", async () => {
      const { run, json } = store.namespace();
      await run(level, set, ...target, ...limits, "--principal", "ops@example");
      await run(level, remove, ...target, "-y", "--principal", "ops2");
      const of = { system: "$SYSTEM", resource: "$RESOURCE:gpt-4", entity: target[0] ?? "" };
      const subject = of[level];
      const { events } = await json<{ events: object[] }>("audit", "list", "-e", subject);
      expect(events).toMatchObject([
        { action: "limits_deleted", principal: "ops2" },
        { action: "limits_set", principal: "ops@example" },
      ]);
      const wrong = await run(level, set, ...target, "-l", "rpm:1", "--principal", "a b");
      expect(wrong).toMatchObject({ code: 1, out: "" });
    });
  },
);

describe("warnings of lost limits", () => {
  test("a total loses nothing that the system has, and no default loses what a total has", async () => {
    const { run } = store.namespace();
    const quiet = async (...words: string[]) => expect((await run(...words)).err).toBe("");
    await quiet("system", "set-limits", "-l", "rpm:10", "-l", "tpm:1000");
    await quiet("entity", "set-limits", "team-a", "-r", "@all", "-l", "rpm:60");
    await quiet("entity", "set-children-limits", "team-a", "-r", "@all", "-l", "rpm:60");
    await quiet("entity", "set-limits", "team-b", "-l", "rpm:60", "-l", "tpm:500");
    const total = await run("resource", "set-limits", "@all", "-l", "rpm:60", "-l", "rpd:9/day");
    expect(total.err).toBe(
      "Warning: team-a/@all loses rpd, which resource @all has. " +
        "The limits of an entity replace all others\n",
    );
    await quiet("system", "set-limits", "-l", "rpm:10", "-l", "tpm:1000");
  });

  test("limits for children warn of what each child loses", async () => {
    const { run } = store.namespace();
    await run("system", "set-limits", "-l", "rpm:10", "-l", "tpm:1000");
    const { err } = await run("entity", "set-children-limits", "team-a", "-l", "rpm:60");
    expect(err).toContain("children of team-a/_default_ loses tpm, which the system has");
  });
});

describe("system", () => {
  test("system keeps what acquires do while the store does not answer", async () => {
    const { run, json } = store.namespace();
    const set = await run("system", "set-defaults", "-l", "rpm:1", "--on-unavailable", "block");
    expect(set.out).toContain("While the store does not answer: block");
    await run("system", "set-defaults", "-l", "rpm:2");
    const config = await json("system", "get-defaults");
    expect(config).toMatchObject({ on_unavailable: "block", limits: [{ capacity: 2 }] });
    const wrong = await run("system", "set-defaults", "-l", "rpm:1", "--on-unavailable", "maybe");
    expect(wrong).toMatchObject({ code: 2, out: "" });
  });

  test("system list shows its limits and those of all resources", async () => {
    const { run, json } = store.namespace();
    expect((await run("system", "list")).code).toBe(1);
    await run("resource", "set-defaults", "gpt-4", "-l", "rpm:30", "-l", "tpm:5000");
    await run("resource", "set-defaults", "gpt-3", "-l", "rpm:60");
    await run("system", "set-defaults", "-l", "rpm:10/sec");
    const { out } = await run("system", "list");
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["RESOURCE", "LIMIT"],
      ["(system)", "rpm: 10/sec"],
      ["gpt-3", "rpm: 60/min"],
      ["gpt-4", "rpm: 30/min"],
      ["", "tpm: 5,000/min"],
      [""],
    ]);
    const listed = await json("system", "list");
    expectShape(shapeOf(system, "list"), listed);
    expect(listed).toMatchObject({
      on_unavailable: null,
      limits: [{ name: "rpm" }],
      resources: [{ resource: "gpt-3" }, { resource: "gpt-4", limits: [{}, {}] }],
    });
    await run("system", "delete-defaults", "-y");
    for (const name of ["gpt-3", "gpt-4"]) await run("resource", "delete-defaults", name, "-y");
    expect((await run("system", "list")).out).toMatch(/^No limits are stored/);
  });
});

describe("resource list", () => {
  test("resource list shows the resources that have limits", async () => {
    const { run, json } = store.namespace();
    await run("resource", "set-defaults", "b/gpt-4", "-l", "rpm:30");
    await run("resource", "set-defaults", "a", "-l", "rpm:30");
    expect(await run("resource", "list")).toMatchObject({ code: 0, out: "a\nb/gpt-4\n", err: "" });
    const listed = await json("resource", "list");
    expectShape(shapeOf(resource, "list"), listed);
    expect(listed).toEqual({ resources: ["a", "b/gpt-4"] });
    await run("resource", "delete-defaults", "a", "-y");
    await run("resource", "delete-defaults", "b/gpt-4", "-y");
    expect((await run("resource", "list")).out).toBe("No resource has limits\n");
    expect(await run("resource", "list", "-N", "missing")).toMatchObject({ code: 1, out: "" });
  });
});
