/** `disable`, `enable`, `bypass`, `clear` and what shows them, in process. */

import { peek } from "@zae-limiter/cli/commands/peek.ts";
import { entity } from "@zae-limiter/cli/commands/records/entity.ts";
import { resource } from "@zae-limiter/cli/commands/records/resource.ts";
import { system } from "@zae-limiter/cli/commands/records/system.ts";
import { describe, expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();

describe("switches", () => {
  test("switches of a resource are set, shown, and refuse acquires", async () => {
    const { run, json } = store.namespace();
    await run("resource", "set-defaults", "gpt-4", "-l", "rpm:10");
    const off = await run("resource", "disable", "gpt-4", "--principal", "ops");
    expect(off).toMatchObject({
      code: 0,
      out: "gpt-4 is switched off: every acquire is refused\n",
      err: "",
    });
    expect((await run("resource", "get-defaults", "gpt-4")).out).toBe(
      "Limits of gpt-4:\n  rpm: 10/min\nIt is switched off: every acquire is refused\n",
    );
    expect((await run("peek", "key-1", "gpt-4")).out).toBe(
      "gpt-4 is switched off: every acquire is refused (by resource)\n",
    );
    const refused = await run("acquire", "key-1", "gpt-4", "-c", "rpm=1");
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain("is switched off");
    const peeked = await json("peek", "key-1", "gpt-4");
    expectShape(peek.json, peeked);
    expect(peeked).toMatchObject({ state: "disabled", level: "resource", limits: [] });
    const cleared = await json("resource", "clear", "gpt-4");
    expectShape(shapeOf(resource, "clear"), cleared);
    expect(cleared).toEqual({ resource: "gpt-4", state: null, stamped_buckets: 0 });
    expect((await run("acquire", "key-1", "gpt-4", "-c", "rpm=1")).code).toBe(0);
  });

  test("switches of an entity are for one resource or for all, and are listed", async () => {
    const { run, json } = store.namespace();
    await run("system", "set-defaults", "-l", "rpm:10");
    await run("entity", "create", "key-1");
    expect((await run("entity", "list")).out).not.toContain("STATE");
    const by = await json("entity", "bypass", "key-1", "-r", "gpt-4");
    expectShape(shapeOf(entity, "bypass"), by);
    expect(by).toMatchObject({ entity_id: "key-1", resource: "gpt-4", state: "bypass" });
    await run("entity", "disable", "key-1");
    expect((await run("entity", "list")).out).toMatch(/STATE\n.*disabled/);
    const listed = await json("entity", "list");
    expectShape(shapeOf(entity, "list"), listed);
    const level = await json("entity", "get-limits", "key-1");
    expectShape(shapeOf(entity, "get-limits"), level);
    expect(level).toMatchObject({ state: "disabled", limits: [], unsupported: [] });
    expect((await run("peek", "key-1", "gpt-4")).out).toContain("bypassed");
    expect((await run("acquire", "key-1", "other", "-c", "rpm=1")).err).toContain("switched off");
    expect((await run("entity", "enable", "key-1")).out).toBe("key-1 is switched on\n");
    expectShape(shapeOf(system, "get-limits"), await json("system", "get-defaults"));
  });

  test("a soft limit is set by its text, and shown with its mark", async () => {
    const { run, json } = store.namespace();
    const set = await run("resource", "set-defaults", "gpt-4", "-l", "tpm:10 soft");
    expect(set.out).toBe("Set 1 limit of gpt-4:\n  tpm: 10/min, soft\n");
    const shown = await json("resource", "get-defaults", "gpt-4");
    expectShape(shapeOf(resource, "get-limits"), shown);
    expect(shown).toMatchObject({ limits: [{ name: "tpm", soft: true }] });
    expect((await run("acquire", "key-1", "gpt-4", "-c", "tpm=50")).code).toBe(0);
    expect((await run("peek", "key-1", "gpt-4")).out).toContain("-40 of 10");
  });
});

describe("cascade and parents", () => {
  test("a policy is set, shown and removed", async () => {
    const { run, json } = store.namespace();
    expect((await run("resource", "set-cascade", "gpt-4", "on")).out).toBe("gpt-4 cascades\n");
    expect((await run("resource", "get-defaults", "gpt-4")).out).toBe(
      "No limits are stored for gpt-4\nIt cascades\n",
    );
    const off = await json("entity", "set-cascade", "key-1", "off", "-r", "gpt-4");
    expectShape(shapeOf(entity, "set-cascade"), off);
    expect(off).toMatchObject({ entity_id: "key-1", resource: "gpt-4", cascade: false });
    expect((await run("entity", "set-cascade", "key-1", "maybe")).code).toBe(2);
    expect((await run("resource", "clear-cascade", "gpt-4")).out).toBe(
      "Removed the cascade policy of gpt-4\n",
    );
    expect(await json("resource", "list")).toEqual({ resources: [] });
  });

  test("an entity is moved to another parent, and to none", async () => {
    const { run, json } = store.namespace();
    for (const id of ["a", "b", "key-1"]) await run("entity", "create", id);
    const moved = await json("entity", "set-parent", "key-1", "--parent", "a");
    expectShape(shapeOf(entity, "set-parent"), moved);
    expect(moved).toMatchObject({ id: "key-1", parent_id: "a" });
    expect((await run("entity", "set-parent", "key-1", "--none")).out).toContain("(none)");
    expect((await run("entity", "set-parent", "key-1")).code).toBe(2);
    const both = await run("entity", "set-parent", "key-1", "--none", "--parent", "b");
    expect(both.code).toBe(2);
    expect((await run("entity", "set-parent", "key-1", "--parent", "typo")).code).toBe(1);
  });
});

test("enable undoes disable, and leaves nothing behind", async () => {
  const { run, json } = store.namespace();
  const switches = () => json("entity", "get-limits", "key-1");
  await run("entity", "set-limits", "key-1", "-l", "rpm:1");
  const before = await switches();
  for (const action of ["disable", "bypass"]) {
    await run("entity", action, "key-1");
    expect(await switches()).not.toEqual(before);
    expect((await run("entity", "enable", "key-1")).code).toBe(0);
    expect(await switches()).toEqual(before);
  }
  // Nothing is off: nothing is written.
  const { events } = await json<{ events: unknown[] }>("audit", "list", "-e", "key-1");
  await run("entity", "enable", "key-1");
  const after = await json<{ events: unknown[] }>("audit", "list", "-e", "key-1");
  expect(after.events).toHaveLength(events.length);
});

test("enable switches an entity on where its resource is switched off", async () => {
  const { run } = store.namespace();
  await run("resource", "set-limits", "gpt-4", "-l", "rpm:5");
  await run("resource", "disable", "gpt-4");
  await run("entity", "disable", "key-1", "-r", "gpt-4");
  const call = ["acquire", "key-1", "gpt-4", "-c", "rpm=1"];
  expect((await run(...call)).code).not.toBe(0);
  await run("entity", "enable", "key-1", "-r", "gpt-4");
  expect((await run(...call)).code).toBe(0);
});

test("the audit log shows switches that are set, unset and removed, and soft limits", async () => {
  const { run } = store.namespace();
  await run("resource", "set-defaults", "gpt-4", "-l", "tpm:10 soft");
  for (const action of ["disable", "clear"]) await run("resource", action, "gpt-4");
  await run("resource", "disable", "gpt-4");
  await run("entity", "enable", "key-1", "-r", "gpt-4");
  await run("resource", "set-cascade", "gpt-4", "off");
  const { out } = await run("audit", "list");
  for (const text of ["tpm:10/min soft", "disabled=true", "disabled=false", "disabled=none"]) {
    expect(out).toContain(text);
  }
  expect(out).toContain("cascade=false");
});

describe("balances", () => {
  test("balances are reset and topped up, once per key", async () => {
    const { run, json } = store.namespace();
    await run("resource", "set-defaults", "gpt-4", "-l", "rpd:10/day", "-l", "tpd:5000/day");
    await run("acquire", "key-1", "gpt-4", "-c", "rpd=10", "-c", "tpd=4000");
    const order = ["--add", "tpd:1500", "--idempotency-key", "order-1"];
    const topped = await run("entity", "top-up", "key-1", "-r", "gpt-4", ...order);
    expect(topped.out).toBe("Topped up key-1 on gpt-4:\n  tpd: +1,500\n");
    const again = await json("entity", "top-up", "key-1", "-r", "gpt-4", ...order);
    expectShape(shapeOf(entity, "top-up"), again);
    expect(again).toMatchObject({ shards: 1, amounts: { tpd: 1500 } });
    const reset = await json("entity", "reset", "key-1", "-r", "gpt-4", "-l", "rpd");
    expectShape(shapeOf(entity, "reset"), reset);
    expect(reset).toMatchObject({ amounts: { rpd: 10 } });
    expect((await run("entity", "reset", "other", "-r", "gpt-4")).out).toContain("has no bucket");
    const negative = await run("entity", "top-up", "key-1", "-r", "gpt-4", "--add", "tpd:-2");
    expect(negative.code).toBe(2);
    expect(negative.err).toContain("expected a limit and a whole number, e.g. tpd:5000");
  });
});
