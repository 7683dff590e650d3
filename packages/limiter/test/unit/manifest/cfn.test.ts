/** Limits in the words of CloudFormation, there and back. */

import { readFileSync } from "node:fs";
import { cfnTemplate, manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { InvalidManifestError } from "@zae-limiter/limiter/manifest/problem.ts";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

interface Template {
  readonly AWSTemplateFormatVersion: unknown;
  readonly Resources: {
    readonly TenantLimits: { readonly Type: string; readonly Properties: Record<string, unknown> };
  };
}

const MANIFEST = parseManifest(`
namespace: "123"
system: { on_unavailable: allow, limits: { rpm: { capacity: 1000, refill_amount: 100, refill_period: 60 } } }
resources: { Limits: { limits: { Capacity: { capacity: 3, burst: 5 } } } }
entities: { u: { resources: { _default_: { limits: { rpm: { capacity: 7 } } } } } }
`);

const SCHEMA = new URL("../../../../../schema/limits.schema.json", import.meta.url);

function upperCase(text: string): string {
  return text.replace("_", "").toUpperCase();
}

/** Returns what is wrong with the properties. */
function problemsOf(properties: Record<string, unknown>): string {
  try {
    manifestFromProperties(properties);
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

function propertiesOf(text: string): Record<string, unknown> {
  return (parse(text) as Template).Resources.TenantLimits.Properties;
}

test("flags and soft limits go there and come back, whether as booleans or as text", () => {
  const manifest = parseManifest(`
namespace: n
resources: { off: { disabled: true }, by: { disabled: bypass, cascade: false } }
entities: { u: { resources: { off: { disabled: false, limits: { t: { capacity: 1, soft: true } } } } } }
`);
  const properties = propertiesOf(cfnTemplate(manifest, "my-app"));
  expect(manifestFromProperties(properties)).toEqual(manifest);
  const asText = JSON.parse(
    JSON.stringify(properties, (_, value: unknown) =>
      typeof value === "boolean" ? String(value) : value,
    ),
  ) as Record<string, unknown>;
  expect(manifestFromProperties(asText)).toEqual(manifest);
});

test("quotas and sessions go there and come back, also with every number as text", () => {
  const manifest = parseManifest(`
namespace: n
replace_kind: true
resources:
  api:
    limits:
      a: { quota: { amount: 5, every: month, on: 15, at: "06:00", time_zone: Europe/Berlin } }
      b: { quota: { amount: 5, cron: "0 6 * * 1-5", carry: rest, carry_max: 2 }, soft: true }
      c: { capacity: 5, session_seconds: 60 }
`);
  const properties = propertiesOf(cfnTemplate(manifest, "my-app"));
  expect(properties).toMatchObject({
    ReplaceKind: true,
    Resources: {
      api: {
        Limits: {
          a: {
            Quota: { Amount: 5, Every: "month", On: 15, At: "06:00", TimeZone: "Europe/Berlin" },
          },
          c: { Capacity: 5, SessionSeconds: 60 },
        },
      },
    },
  });
  expect(manifestFromProperties(properties)).toEqual(manifest);
  const asText = JSON.parse(
    JSON.stringify(properties, (_, value: unknown) =>
      typeof value === "boolean" || typeof value === "number" ? String(value) : value,
    ),
  ) as Record<string, unknown>;
  expect(manifestFromProperties(asText)).toEqual(manifest);
});

test("slots go there and come back, also with every value as text", () => {
  const manifest = parseManifest("{ namespace: n, system: { limits: ['p:20 concurrent soft'] } }");
  const properties = propertiesOf(cfnTemplate(manifest, "my-app"));
  expect(properties.System).toEqual({
    Limits: { p: { Capacity: 20, Concurrent: true, Soft: true } },
  });
  expect(manifestFromProperties(properties)).toEqual(manifest);
  const p = { Capacity: "20", Concurrent: "true", Soft: "true" };
  expect(manifestFromProperties({ Namespace: "n", System: { Limits: { p } } })).toEqual(manifest);
});

test("every field of a limits file has a name in a template", () => {
  const schema = JSON.parse(readFileSync(SCHEMA, "utf8")) as unknown;
  const fields = new Set<string>();
  JSON.stringify(schema, (key, value: unknown) => {
    if (key === "properties") for (const field of Object.keys(value as object)) fields.add(field);
    return value;
  });
  // Older files have it in place of the capacity; a template gets the capacity.
  fields.delete("burst");
  expect(fields.size).toBeGreaterThan(25);
  const words = [...fields].map((field) => field.replaceAll(/(?:^|_)[a-z]/g, upperCase));
  for (const word of words) {
    const limit = { Capacity: 1, [word]: {} };
    const properties = { Namespace: "n", [word]: {}, System: { [word]: {}, Limits: { a: limit } } };
    const refused = problemsOf({ ...properties, Entities: { u: { [word]: {} } } });
    expect(refused, word).not.toMatch(new RegExp(`there is no "${word}" here`));
  }
});

test("resets in the words of the Python library are quotas and sessions", () => {
  const ResetSchedule = [{ Cron: "0 0 1 * *", Tz: "Asia/Tokyo" }];
  const manifest = manifestFromProperties({
    Namespace: "n",
    System: {
      Limits: {
        month: { Capacity: "5", RefillAmount: "0", ResetSchedule },
        ses: { Capacity: "5", ResetAfterSeconds: "18000" },
      },
    },
  });
  expect(manifest.system?.limits.map(String)).toEqual([
    "month:5/month Asia/Tokyo",
    "ses:5/session:5hour",
  ]);
});

test("windows are the same in a template, and when every number of it is text", () => {
  const schedule = [
    { cron: "* 9-17 * * 1-5", tz: "Europe/Berlin", scale: 0.5 },
    { when: "sat,sun", tz: "Europe/Berlin", capacity: 5, refill_amount: 5 },
  ];
  const system = { limits: { rpm: { capacity: 9, schedule } } };
  const manifest = parseManifest(JSON.stringify({ namespace: "n", system }));
  const properties = propertiesOf(cfnTemplate(manifest, "s"));
  expect(properties).toMatchObject({
    System: {
      Limits: {
        rpm: {
          Schedule: [
            { Cron: "* 9-17 * * 1-5", Tz: "Europe/Berlin", Scale: 0.5 },
            { Cron: "* * * * 6,7", Capacity: 5, RefillAmount: 5 },
          ],
        },
      },
    },
  });
  const asText = JSON.parse(JSON.stringify(properties), (_, value: unknown) =>
    typeof value === "number" ? String(value) : value,
  ) as Record<string, unknown>;
  expect(manifestFromProperties(asText)).toEqual(manifest);
});

describe("the template", () => {
  test("the template has every number of a limit, and no burst (op 42)", () => {
    const text = cfnTemplate(MANIFEST, "my-app");
    const { AWSTemplateFormatVersion, Resources } = parse(text) as Template;
    expect(AWSTemplateFormatVersion).toBe("2010-09-09");
    expect(Resources.TenantLimits.Type).toBe("Custom::ZaeLimiterLimits");
    expect(propertiesOf(text)).toEqual({
      ServiceToken: { "Fn::ImportValue": "my-app-ProvisionerArn" },
      TableName: "my-app",
      Namespace: "123",
      System: {
        OnUnavailable: "allow",
        Limits: { rpm: { Capacity: 1000, RefillAmount: 100, RefillPeriod: 60 } },
      },
      Resources: {
        Limits: { Limits: { Capacity: { Capacity: 5, RefillAmount: 5, RefillPeriod: 60 } } },
      },
      Entities: {
        u: {
          Resources: {
            _default_: { Limits: { rpm: { Capacity: 7, RefillAmount: 7, RefillPeriod: 60 } } },
          },
        },
      },
    });
    expect(text).not.toMatch(/burst/i);
  });

  test("the template has only the sections that the manifest has", () => {
    const properties = propertiesOf(cfnTemplate(parseManifest("namespace: n"), "s"));
    expect(Object.keys(properties)).toEqual(["ServiceToken", "TableName", "Namespace"]);
  });
});

describe("the properties", () => {
  test("the properties are read back as the same manifest, also when every number is text", () => {
    const properties = propertiesOf(cfnTemplate(MANIFEST, "my-app"));
    expect(manifestFromProperties(properties)).toEqual(MANIFEST);
    const asText = JSON.parse(JSON.stringify(properties), (_, value: unknown) =>
      typeof value === "number" ? String(value) : value,
    ) as Record<string, unknown>;
    expect(manifestFromProperties(asText)).toEqual(MANIFEST);
  });

  test("the properties are of the namespace default when they name none", () => {
    expect(manifestFromProperties({ TableName: "t", NamespaceId: "x" }).namespace).toBe("default");
  });

  test("the properties are refused when they are unknown", () => {
    const wrong = { Namespace: "n", System: { Limits: { rpm: { Capacity: "many", Burst: 1 } } } };
    expect(() => manifestFromProperties(wrong)).toThrow(InvalidManifestError);
    expect(() => manifestFromProperties(wrong)).toThrow(
      /system\.limits\.rpm\.Burst: there is no "Burst" here.*; system\.limits\.rpm\.capacity/,
    );
  });
});
