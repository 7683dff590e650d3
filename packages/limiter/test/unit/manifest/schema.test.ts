/** The JSON schema for editors says the same as the validator, for good files and for bad ones. */

import { readFileSync } from "node:fs";
import { checkManifest } from "@zae-limiter/limiter/manifest/check-manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const SCHEMA = JSON.parse(
  readFileSync(new URL("../../../../../schema/limits.schema.json", import.meta.url), "utf8"),
) as object;
const accepts = new Ajv({ allErrors: true, strictTypes: true }).compile(SCHEMA);

const limit = (more: object = {}) => ({ limits: { rpm: { capacity: 10, ...more } } });

const VALID: readonly [string, unknown][] = [
  ["a namespace alone", { namespace: "n" }],
  ["any words as a namespace", { namespace: "Kunde Ä 🎉" }],
  ["a namespace of 250 characters", { namespace: "🎉".repeat(250) }],
  ["only a mode", { namespace: "n", system: { on_unavailable: "allow" } }],
  ["a mode and no limits", { namespace: "n", system: { on_unavailable: "allow", limits: {} } }],
  ["empty sections", { namespace: "n", resources: {}, entities: {} }],
  ["the largest numbers", { namespace: "n", system: limit({ capacity: 1e12 }) }],
  ["the longest period", { namespace: "n", system: limit({ refill_period: 1_000_000_000 }) }],
  ["a burst", { namespace: "n", resources: { "a/b": limit({ burst: 12 }) } }],
  ["a soft limit", { namespace: "n", system: limit({ soft: true }) }],
  ["a resource that is off", { namespace: "n", resources: { a: { disabled: true } } }],
  ["a resource that is bypassed", { namespace: "n", resources: { a: { disabled: "bypass" } } }],
  ["a cascade policy", { namespace: "n", resources: { a: { ...limit(), cascade: false } } }],
  ["limits as text", { namespace: "n", system: { limits: ["rpm:60", "tpm:10k/min:15_000 soft"] } }],
  ["limits of children as text", children({ _default_: { limits: ["rpd:10"] } })],
  ["a mode and an empty list", { namespace: "n", system: { on_unavailable: "allow", limits: [] } }],
  ["a field for anchors", { namespace: "n", "x-common": [1] }],
  ["all resources of an entity", entity("a@b:c", "_default_")],
  ["limits for children", children({ "@all": limit(), _default_: limit() })],
  ["the longest id", entity("x".repeat(256), "x".repeat(256))],
  ["a resource that begins with a digit", { namespace: "n", resources: { "4o": limit() } }],
  ["a model with a tag", { namespace: "n", resources: { "llama3.1:8b": limit() } }],
  ["a model with a provider", { namespace: "n", resources: { "@cf/meta/llama": limit() } }],
  ["a quota", quota({ amount: 5, every: "month", on: 15, time_zone: "Europe/Berlin" })],
  ["a quota at a time", quota({ amount: 5, every: "week", on: "sunday", at: "06:00" })],
  ["a quota of a fiscal year", quota({ amount: 5, every: "year", on: "04-01" })],
  ["a quota by cron", quota({ amount: 5, cron: "0 6 * * 1-5", carry: "rest", carry_max: 2 })],
  [
    "a soft session",
    { namespace: "n", system: only({ capacity: 5, session_seconds: 9, soft: true }) },
  ],
  [
    "a session of Python",
    { namespace: "n", system: only({ capacity: 5, reset_after_seconds: 9 }) },
  ],
  [
    "a quota of Python",
    pythonQuota([
      { cron: "0 0 * * *", tz: "UTC" },
      { cron: "0 9 * * *", tz: "UTC" },
    ]),
  ],
  ["slots", { namespace: "n", system: only({ capacity: 5, concurrent: true }) }],
  ["soft slots", { namespace: "n", system: only({ capacity: 5, concurrent: true, soft: true }) }],
  ["slots as text", { namespace: "n", system: { limits: ["parallel:20 concurrent"] } }],
  ["windows in words", windows([{ when: "mon-fri 9-18", tz: "Europe/Berlin", scale: 0.5 }])],
  [
    "windows as the Python library writes them",
    windows([{ cron: "* 9-17 * * 1-5", capacity: 50, refill_amount: 5, refill_period_seconds: 1 }]),
  ],
  ["the word for other kinds", { namespace: "n", replace_kind: true }],
  ["a parent", { namespace: "n", entities: { a: { parent: "b", cascade: true } } }],
  [
    "a parent in the file",
    { namespace: "n", entities: { a: { parent: "b" }, b: { cascade: false } } },
  ],
];

const INVALID: readonly [string, unknown][] = [
  ["no namespace", {}],
  ["an empty namespace", { namespace: "" }],
  ["the reserved namespace", { namespace: "_" }],
  ["a namespace that is a number", { namespace: 1 }],
  ["a namespace with a control character", { namespace: "a\nb" }],
  ["half a character", { namespace: "a\ud800" }],
  ["a namespace that is too long", { namespace: "x".repeat(251) }],
  ["an unknown section", { namespace: "n", entity: {} }],
  ["a section that is null", { namespace: "n", resources: null }],
  ["a section that is a list", { namespace: "n", entities: [] }],
  ["a system that says nothing", { namespace: "n", system: {} }],
  ["a system with no limits", { namespace: "n", system: { limits: {} } }],
  ["an unknown mode", { namespace: "n", system: { on_unavailable: "deny" } }],
  ["a resource without limits", { namespace: "n", resources: { a: {} } }],
  ["a resource with no limits", { namespace: "n", resources: { a: { limits: {} } } }],
  ["a resource with a mode", { namespace: "n", resources: { a: { ...limit(), x: 1 } } }],
  ["a switch of the system", { namespace: "n", system: { ...limit(), disabled: true } }],
  ["an unknown switch", { namespace: "n", resources: { a: { disabled: "off" } } }],
  ["a cascade that is a text", { namespace: "n", resources: { a: { cascade: "yes" } } }],
  ["a soft that is a number", { namespace: "n", system: limit({ soft: 1 }) }],
  ["_default_ as a resource", { namespace: "n", resources: { _default_: limit() } }],
  ["a resource that begins with a colon", { namespace: "n", resources: { ":8b": limit() } }],
  ["a resource that is too long", { namespace: "n", resources: { ["x".repeat(257)]: limit() } }],
  ["an entity without resources", { namespace: "n", entities: { a: {} } }],
  ["an entity with no resources", { namespace: "n", entities: { a: { resources: {} } } }],
  ["no limits for children", children({})],
  ["children that are null", children(null)],
  ["a switch of children", children({ "gpt-4": { ...limit(), disabled: true } })],
  ["a level of children without limits", children({ "gpt-4": { limits: {} } })],
  ["a level of children that says nothing", children({ "gpt-4": {} })],
  ["an id with a slash", entity("a/b", "r")],
  ["an id that is too long", entity("x".repeat(257), "r")],
  ["an empty id", entity("", "r")],
  ["the reserved limit", { namespace: "n", system: { limits: { wcu: { capacity: 1 } } } }],
  ["a limit that is a number", { namespace: "n", system: { limits: { rpm: 1 } } }],
  ["a limit without a capacity", { namespace: "n", system: { limits: { rpm: { burst: 1 } } } }],
  ["a capacity of 0", { namespace: "n", system: limit({ capacity: 0 }) }],
  ["a capacity that is too large", { namespace: "n", system: limit({ capacity: 1e12 + 1 }) }],
  ["an empty list of limits", { namespace: "n", system: { limits: [] } }],
  ["a text without an amount", { namespace: "n", system: { limits: ["rpm"] } }],
  ["a text of the reserved limit", { namespace: "n", system: { limits: ["wcu:5"] } }],
  ["a mapping in a list", { namespace: "n", system: { limits: [{ rpm: 60 }] } }],
  ["a text twice", { namespace: "n", system: { limits: ["rpm:60", "rpm:60"] } }],
  ["half a token", { namespace: "n", system: limit({ refill_amount: 0.5 }) }],
  ["a number as text", { namespace: "n", system: limit({ refill_period: "60" }) }],
  ["a number that is null", { namespace: "n", system: limit({ burst: null }) }],
  ["a period that is too long", { namespace: "n", system: limit({ refill_period: 1e9 + 1 }) }],
  ["a quota without an amount", quota({ every: "month" })],
  ["a quota without a calendar", quota({ amount: 5 })],
  ["a quota with two calendars", quota({ amount: 5, every: "day", cron: "0 0 * * *" })],
  ["a quota of an hour", quota({ amount: 5, every: "hour" })],
  ["a quota on day 29", quota({ amount: 5, every: "month", on: 29 })],
  ["a quota at no time", quota({ amount: 5, every: "day", at: "25:00" })],
  ["a quota in an offset", quota({ amount: 5, every: "day", time_zone: "+02:00" })],
  ["a quota with another carry", quota({ amount: 5, every: "day", carry: "all" })],
  [
    "a quota with a capacity",
    { namespace: "n", system: limit({ quota: { amount: 5, every: "day" } }) },
  ],
  [
    "a quota that refills",
    { namespace: "n", system: only({ quota: { amount: 5, every: "day" }, refill_amount: 5 }) },
  ],
  ["a session without a capacity", { namespace: "n", system: only({ session_seconds: 5 }) }],
  ["a session of no time", { namespace: "n", system: only({ capacity: 5, session_seconds: 0 }) }],
  [
    "a session with a period",
    { namespace: "n", system: limit({ session_seconds: 5, refill_period: 5 }) },
  ],
  ["a session with a burst", { namespace: "n", system: limit({ session_seconds: 5, burst: 5 }) }],
  [
    "a session with two lengths",
    { namespace: "n", system: limit({ session_seconds: 5, reset_after_seconds: 5 }) },
  ],
  ["slots without a capacity", { namespace: "n", system: only({ concurrent: true }) }],
  ["slots that are none", { namespace: "n", system: only({ capacity: 5, concurrent: false }) }],
  [
    "slots with a refill",
    { namespace: "n", system: only({ capacity: 5, concurrent: true, refill_amount: 5 }) },
  ],
  [
    "slots with a quota",
    { namespace: "n", system: only({ concurrent: true, quota: { amount: 5, every: "day" } }) },
  ],
  ["a quota of Python without entries", pythonQuota([])],
  ["a quota of Python with more", pythonQuota([{ cron: "0 0 * * *", scale: 2 }])],
  ["no windows", windows([])],
  ["a window at no time", windows([{ scale: 2 }])],
  ["a window at two times", windows([{ when: "9-18", cron: "* 9 * * *", scale: 2 }])],
  ["a window that changes nothing", windows([{ when: "9-18" }])],
  ["a window that does both", windows([{ when: "9-18", scale: 2, capacity: 5 }])],
  ["a window with a scale of 0", windows([{ when: "9-18", scale: 0 }])],
  ["a window in an offset", windows([{ when: "9-18", scale: 2, tz: "+02:00" }])],
  [
    "slots with windows",
    {
      namespace: "n",
      system: only({ capacity: 5, concurrent: true, schedule: [{ when: "9-18", scale: 2 }] }),
    },
  ],
  ["a parent with a slash", { namespace: "n", entities: { a: { parent: "b/c" } } }],
  ["a parent that is null", { namespace: "n", entities: { a: { parent: null } } }],
  ["a cascade of an entity that is a text", { namespace: "n", entities: { a: { cascade: "no" } } }],
  ["another word for other kinds", { namespace: "n", replace_kind: "yes" }],
];

function only(declared: object) {
  return { limits: { rpm: declared } };
}

function quota(declared: object): unknown {
  return { namespace: "n", system: only({ quota: declared }) };
}

function pythonQuota(entries: readonly object[]): unknown {
  return { namespace: "n", system: only({ capacity: 5, reset_schedule: entries }) };
}

function windows(schedule: readonly object[]): unknown {
  return { namespace: "n", system: limit({ schedule }) };
}

function children(declared: unknown): unknown {
  return { namespace: "n", entities: { a: { children: declared } } };
}

function entity(id: string, resource: string): unknown {
  return { namespace: "n", entities: { [id]: { resources: { [resource]: limit() } } } };
}

describe("schema and validator", () => {
  test.each(VALID)("schema and validator accept %s", (_, data) => {
    expect(accepts(data), JSON.stringify(accepts.errors)).toBe(true);
    const checked = checkManifest(data);
    expect(checked).toHaveProperty("manifest");
    if (!("manifest" in checked)) return;
    expect(parseManifest(printManifest(checked.manifest))).toEqual(checked.manifest);
  });

  test.each(INVALID)("schema and validator refuse %s", (_, data) => {
    expect(accepts(data)).toBe(false);
    expect(checkManifest(data)).toHaveProperty("problems");
  });

  const names = fc.oneof(
    fc.constantFrom("rpm", "gpt-4", "_default_", "wcu", "_", "a/b", "a#b", "a:b", "a@b", "4o", ""),
    fc.string({ maxLength: 3 }),
  );
  const numbers = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 100_000 }) },
    fc.constantFrom<unknown>(0, -1, 1.5, 1e12, 1e12 + 1, 1e9, 1e9 + 1, "1", null, true),
  );
  const declarations = fc.record(
    { capacity: numbers, refill_amount: numbers, refill_period: numbers, burst: numbers },
    { requiredKeys: ["capacity"] },
  );
  const levels = fc.record({
    limits: fc.dictionary(
      fc.oneof({ weight: 6, arbitrary: fc.constant("rpm") }, names),
      declarations,
      {
        maxKeys: 2,
      },
    ),
  });
  const manifests = fc.record(
    {
      namespace: fc.oneof({ weight: 8, arbitrary: fc.constant("n") }, names),
      system: fc.record(
        {
          on_unavailable: fc.constantFrom("allow", "block", "no"),
          limits: levels.map((l) => l.limits),
        },
        { requiredKeys: [] },
      ),
      resources: fc.dictionary(names, levels, { maxKeys: 2 }),
      entities: fc.dictionary(
        names,
        fc.record(
          {
            resources: fc.dictionary(names, levels, { maxKeys: 2 }),
            children: fc.dictionary(names, levels, { maxKeys: 2 }),
            parent: fc.constantFrom<unknown>("p", "q", "a/b", null),
            cascade: fc.constantFrom<unknown>(true, false, 1),
          },
          { requiredKeys: [] },
        ),
        { maxKeys: 2 },
      ),
    },
    { requiredKeys: ["namespace"] },
  );

  test("schema and validator agree about anything else, and what they accept is read back", () => {
    let accepted = 0;
    fc.assert(
      fc.property(manifests, (data) => {
        const checked = checkManifest(data);
        expect(accepts(data), JSON.stringify(data)).toBe("manifest" in checked);
        if (!("manifest" in checked)) return;
        accepted += 1;
        expect(parseManifest(printManifest(checked.manifest))).toEqual(checked.manifest);
      }),
      { numRuns: 2000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});
