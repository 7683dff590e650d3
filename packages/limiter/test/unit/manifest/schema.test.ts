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
  ["a field for anchors", { namespace: "n", "x-common": [1] }],
  ["all resources of an entity", entity("a@b:c", "_default_")],
  ["the longest id", entity("x".repeat(256), "x".repeat(256))],
  ["a resource that begins with a digit", { namespace: "n", resources: { "4o": limit() } }],
  ["a model with a tag", { namespace: "n", resources: { "llama3.1:8b": limit() } }],
  ["a model with a provider", { namespace: "n", resources: { "@cf/meta/llama": limit() } }],
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
  ["an id with a slash", entity("a/b", "r")],
  ["an id that is too long", entity("x".repeat(257), "r")],
  ["an empty id", entity("", "r")],
  ["the reserved limit", { namespace: "n", system: { limits: { wcu: { capacity: 1 } } } }],
  ["a limit that is a number", { namespace: "n", system: { limits: { rpm: 1 } } }],
  ["a limit without a capacity", { namespace: "n", system: { limits: { rpm: { burst: 1 } } } }],
  ["a capacity of 0", { namespace: "n", system: limit({ capacity: 0 }) }],
  ["a capacity that is too large", { namespace: "n", system: limit({ capacity: 1e12 + 1 }) }],
  ["half a token", { namespace: "n", system: limit({ refill_amount: 0.5 }) }],
  ["a number as text", { namespace: "n", system: limit({ refill_period: "60" }) }],
  ["a number that is null", { namespace: "n", system: limit({ burst: null }) }],
  ["a period that is too long", { namespace: "n", system: limit({ refill_period: 1e9 + 1 }) }],
];

function entity(id: string, resource: string): unknown {
  return { namespace: "n", entities: { [id]: { resources: { [resource]: limit() } } } };
}

describe("schema and validator", () => {
  test.each(VALID)("schema and validator accept %s", (_, data) => {
    expect(accepts(data), JSON.stringify(accepts.errors)).toBe(true);
    expect(checkManifest(data)).toHaveProperty("manifest");
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
        fc.record({ resources: fc.dictionary(names, levels, { maxKeys: 2 }) }),
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
