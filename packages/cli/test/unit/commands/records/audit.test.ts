/** `audit`, in process. */

import { audit } from "@zae-limiter/cli/commands/records/audit.ts";
import { expect, test } from "vitest";
import { expectShape, shapeOf } from "../../shape.ts";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const NOON = "2030-01-01T12:00:00Z";
/** Events of one millisecond and of several processes have no order, so no two are. */
let reads = 0;
const clock = () => {
  reads += 1;
  return Date.parse(NOON) + reads;
};

interface Listed {
  readonly events: readonly { event_id: string; action: string }[];
  readonly next_start_event_id: string | null;
}

test("the newest comes first, page by page; what is not known is a dash", async () => {
  const { run, json } = store.namespace({ clock, env: { ZAEL_PRINCIPAL: "ci" } });
  const principal = `operator.with.a.long.name.${"x".repeat(60)}@example.com`;
  await run("entity", "create", "key-1");
  await run("entity", "set-limits", "key-1", "-l", "rpm:1", "--principal", principal);
  await run("entity", "delete-limits", "key-1", "-y");
  const all = await run("audit", "list", "-e", "key-1");
  expect(all).toMatchObject({ code: 0, err: "" });
  expect(
    all.out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ["TIME", "ACTION", "PRINCIPAL", "RESOURCE", "DETAILS"],
    [NOON, "limits_deleted", "ci", "_default_", "-"],
    [NOON, "limits_set", principal, "_default_", "rpm:1/min"],
    [NOON, "entity_created", "ci", "-", "name=key-1"],
  ]);
  const page = await json<Listed>("audit", "list", "--entity-id", "key-1", "--limit", "2");
  expectShape(shapeOf(audit, "list"), page);
  const next = page.events[1]?.event_id as string;
  expect(page.next_start_event_id).toBe(next);
  const text = await run("audit", "list", "-e", "key-1", "-l", "2");
  expect(text.err).toBe(`There may be more; continue with --start-event-id ${next}\n`);
  const rest = await json<Listed>("audit", "list", "-e", "key-1", "--start-event-id", next);
  expect(rest.events.map(({ action }) => action)).toEqual(["entity_created"]);
  expect(rest.next_start_event_id).toBeNull();
});

test("audit without events is one line; a wrong event and a wrong entity are refused", async () => {
  const { run } = store.namespace();
  await run("entity", "create", "key-1");
  const nothing = await run("audit", "list", "-e", "$SYSTEM");
  expect(nothing).toMatchObject({ code: 0, out: "Nothing was changed for $SYSTEM\n", err: "" });
  const wrong = await run("audit", "list", "-e", "key-1", "--start-event-id", "yesterday");
  expect(wrong).toMatchObject({ code: 1, out: "" });
  expect(wrong.err).toContain("the id of an audit event");
  expect(await run("audit", "list", "-e", "#")).toMatchObject({ code: 1, out: "" });
});

test("without an entity, the changes of the whole namespace are listed", async () => {
  const { run, json } = store.namespace({ clock, env: { ZAEL_PRINCIPAL: "ci" } });
  const parent = ["--parent", "acme", "--allow-missing-parent", "--cascade"];
  await run("entity", "create", "key-1", ...parent, "--metadata", '{"a":1}');
  await run("resource", "set-defaults", "gpt-4", "-l", "rpm:5", "-l", "tph:100/hour:200");
  await run("system", "set-defaults", "-l", "rpm:9", "--on-unavailable", "allow");
  const { out } = await run("audit", "list");
  const rows = out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(rows).toEqual([
    ["TIME", "ENTITY", "ACTION", "PRINCIPAL", "RESOURCE", "DETAILS"],
    [NOON, "$SYSTEM", "limits_set", "ci", "-", "rpm:9/min on_unavailable=allow"],
    [NOON, "$RESOURCE:gpt-4", "limits_set", "ci", "gpt-4", "rpm:5/min tph:100/hour:200"],
    [
      NOON,
      "key-1",
      "entity_created",
      "ci",
      "-",
      'name=key-1 parent_id=acme cascade=true metadata={"a":1}',
    ],
  ]);
  const page = await json<Listed>("audit", "list", "-l", "1");
  expectShape(shapeOf(audit, "list"), page);
  expect(page).toMatchObject({ entity_id: null, events: [{ entity_id: "$SYSTEM" }] });
  const next = page.next_start_event_id as string;
  const rest = await json<Listed>("audit", "list", "--start-event-id", next);
  expect(rest.events).toMatchObject([{ entity_id: "$RESOURCE:gpt-4" }, { entity_id: "key-1" }]);
});
