/** Which migrations lead from one version to another. */

import {
  isAfter,
  MIGRATIONS,
  migrationsBack,
  migrationsBetween,
} from "@zae-limiter/aws/migrations/registry.ts";
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
    ["0.9.0", "0.10.0", []],
    ["0.9.0", undefined, ["0.11.0"]],
    ["0.10.0", undefined, ["0.11.0"]],
    ["0.10.0-rc1", "0.10.0", []],
    ["0.11.0", undefined, []],
    ["0.11.0", "0.8.0", []],
    ["1.0.0", undefined, []],
  ])("migrations after %s up to %s are those in between", (from, to, expected) => {
    expect(versions(from, to)).toEqual(expected);
  });

  test("migrations of a list are taken back the newest first, if all of them can be", () => {
    const made = (version: string, rollback?: []) => ({
      version,
      description: "made up",
      rules: [],
      ...(rollback === undefined ? {} : { rollback }),
    });
    const all = [made("0.11.0"), made("0.12.0", []), made("0.13.0", [])];
    const back = (to: string) => migrationsBack("0.13.0", to, all).map(({ version }) => version);
    expect(migrationsBetween("0.10.0", "0.12.0", all)).toEqual(all.slice(0, 2));
    expect(back("0.11.0")).toEqual(["0.13.0", "0.12.0"]);
    expect(back("0.13.0")).toEqual([]);
    expect(() => back("0.10.0")).toThrow("The migration to 0.11.0 (made up) cannot be rolled back");
  });

  test("each says what it is good for, and its rules have different names", () => {
    for (const { description, rules } of MIGRATIONS) {
      expect(description).toMatch(/^[a-z].*[^.]$/);
      expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
    }
  });
});
