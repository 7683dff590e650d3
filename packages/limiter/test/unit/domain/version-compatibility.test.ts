/** Operations case 60 and what it leaves open: which versions fit together. */

import {
  checkCompatibility,
  parseVersion,
  WITHOUT_NAMESPACES,
} from "@zae-limiter/limiter/domain/version.ts";
import { describe, expect, test } from "vitest";

const check = (change: object) =>
  checkCompatibility({ client: "0.1.0", schema: "0.11.0", clientMin: "0.0.0", ...change });

describe("versions", () => {
  test("a development version is one before its release (op 60)", () => {
    expect(parseVersion("0.1.0.dev123+gabc")).toEqual({ release: [0, 1, 0], prerelease: "dev" });
  });

  test("an older Lambda fits and can be updated (op 60)", () => {
    const versions = { client: "1.1.0", schema: "1.0.0", lambda: "1.0.0" };
    expect(check(versions)).toMatchObject({ compatible: true, needsLambdaUpdate: true });
  });

  test("another major version of the schema needs a migration first (op 60)", () => {
    const versions = { client: "2.0.0", schema: "1.0.0" };
    expect(check(versions)).toMatchObject({ compatible: false, needsMigration: true });
  });

  test("a client below the minimum does not fit (op 60)", () => {
    const result = check({ clientMin: "0.18.0" });
    expect(result).toMatchObject({ compatible: false, needsMigration: false });
    expect(result.message).toContain("0.18.0");
  });

  test.each([
    ["0.7.0", false, false],
    ["0.8.0", false, false],
    ["0.9.0", true, true],
    ["0.10.0", true, true],
    ["0.11.0", true, false],
    ["0.12.0", true, false],
  ])("a table of %s: fits %s, can be migrated %s", (schema, compatible, needsMigration) => {
    const result = check({ schema });
    expect(result).toMatchObject({ compatible, needsMigration, isTooOld: !compatible });
    expect(result.message.includes("upgrade")).toBe(!compatible);
  });

  test("a table that is too old is upgraded by the Python library first", () => {
    expect(check({ schema: "0.8.0" }).message).toBe(
      "The oldest layout that this client can use or migrate is 0.9.0. Upgrade the table first " +
        "with release 0.17.0 of the Python library: its command " +
        '"zae-limiter upgrade --name TABLE"',
    );
    expect(WITHOUT_NAMESPACES).toMatchObject({ compatible: false, isTooOld: true });
    expect(WITHOUT_NAMESPACES.message).toMatch(
      /before there were namespaces; .* 0\.9\.0\. Upgrade .* 0\.17\.0 .*, then the script/,
    );
  });

  test("the message says all that could be newer", () => {
    const { message } = check({ schema: "0.10.0", lambda: "0.0.1" });
    expect(message).toBe(
      "The Lambda is older than this client. The table can be brought to schema 0.11.0",
    );
  });
});
