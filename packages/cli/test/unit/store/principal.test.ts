/** The author of a change that the command line does not name. */

import { hostname } from "node:os";
import { defaultPrincipal } from "@zae-limiter/cli/store/principal.ts";
import { expect, test } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();

test("the author of a change is ZAEL_PRINCIPAL, else the user and the host", () => {
  expect(defaultPrincipal({ ZAEL_PRINCIPAL: "ci" })).toBe("ci");
  expect(defaultPrincipal({ ZAEL_PRINCIPAL: "" }, () => "root@box")).toBe("root@box");
  expect(defaultPrincipal({})).toMatch(/^[A-Za-z0-9][A-Za-z0-9_.\-:@]*$/);
});

test("a user with characters that no id has is still named", () => {
  expect(defaultPrincipal({}, () => "DOMAIN\\jane doe@box")).toBe("DOMAIN-jane-doe@box");
  expect(defaultPrincipal({}, () => "_www@box")).toBe("www@box");
  expect(defaultPrincipal({}, () => "Łukasz@box")).toBe("ukasz@box");
  expect(defaultPrincipal({}, () => `${"x".repeat(300)}@box`)).toHaveLength(256);
  expect(defaultPrincipal({}, () => "")).toBeUndefined();
});

test("a change without --principal has an author in the audit log", async () => {
  const { run, under, json } = store.namespace();
  await run("system", "set-limits", "-l", "rpm:1");
  await under({ env: { ZAEL_PRINCIPAL: "ci" } }, "system", "set-limits", "-l", "rpm:2");
  await run("system", "set-limits", "-l", "rpm:3", "--principal", "maria");
  const { events } = await json<{ events: { principal: string }[] }>("audit", "list");
  expect(events.map(({ principal }) => principal).slice(0, 2)).toEqual(["maria", "ci"]);
  expect(events[2]?.principal).toContain(`@${hostname()}`);
});

test("a ZAEL_PRINCIPAL that cannot be stored is refused by its name, before anything", async () => {
  const { run, under } = store.namespace();
  const env = { ZAEL_PRINCIPAL: "jane doe" };
  const refused = await under({ env }, "system", "set-limits", "-l", "rpm:1");
  expect(refused).toMatchObject({ code: 2, out: "" });
  expect(refused.err).toContain("ZAEL_PRINCIPAL");
  expect((await run("system", "get-limits")).err).toContain("There is no namespace");
});
