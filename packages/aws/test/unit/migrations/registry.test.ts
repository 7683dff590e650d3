/** Which migrations lead from one version to another. */

import { isAfter, MIGRATIONS, migrationsBetween } from "@zae-limiter/aws/migrations/registry.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { describe, expect, test } from "vitest";

const versions = (from: string, to?: string) =>
  migrationsBetween(from, to).map(({ version }) => version);

describe("migrations", () => {
  test("migrations are in order, and the last one leads to the schema of this version", () => {
    const all = MIGRATIONS.map(({ version }) => version);
    expect(all.at(-1)).toBe(SCHEMA_VERSION);
    for (const [index, version] of all.entries()) {
      expect(index === 0 || isAfter(version, all[index - 1] as string)).toBe(true);
    }
  });

  test.each([
    ["0.0.0", undefined, ["0.7.0", "0.8.0", "0.9.0", "0.11.0"]],
    ["0.7.0", undefined, ["0.8.0", "0.9.0", "0.11.0"]],
    ["0.8.0", "0.10.0", ["0.9.0"]],
    ["0.9.0", undefined, ["0.11.0"]],
    ["0.10.0", undefined, ["0.11.0"]],
    ["0.10.0-rc1", "0.10.0", []],
    ["0.11.0", undefined, []],
    ["0.11.0", "0.8.0", []],
    ["1.0.0", undefined, []],
  ])("migrations after %s up to %s are those in between", (from, to, expected) => {
    expect(versions(from, to)).toEqual(expected);
  });

  test("each says what it is good for, and its rules have different names", () => {
    for (const { description, rules } of MIGRATIONS) {
      expect(description).toMatch(/^[a-z].*[^.]$/);
      expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
    }
  });
});
