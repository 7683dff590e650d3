import {
  CLIENT_VERSION,
  checkCompatibility,
  compareVersions,
  parseVersion,
  REFERENCE_VERSION,
} from "@zae-limiter/limiter/domain/version.ts";
import { describe, expect, test } from "vitest";
import packageJson from "../../../../../package.json" with { type: "json" };

const FITTING = { client: "0.1.0", schema: "0.11.0", clientMin: "0.0.0" };

function parsed(text: string) {
  const version = parseVersion(text);
  if (version === undefined) throw new Error(`${text} is not a version`);
  return version;
}

describe("versions", () => {
  test("the client says the version of its package", () => {
    expect(CLIENT_VERSION).toBe(packageJson.version);
  });

  test.each([
    ["1.2.3", [1, 2, 3], undefined],
    ["v1.2.3", [1, 2, 3], undefined],
    ["1.2.3-rc1", [1, 2, 3], "rc1"],
    ["1.2.3.dev4+g123", [1, 2, 3], "dev"],
  ])("the text %s is read as a version", (text, release, prerelease) => {
    expect(parseVersion(text)).toEqual({ release, prerelease });
  });

  test.each(["", "1.2", "1.2.3.4", "latest", "1.2.3\n", " 1.2.3"])(
    "the text %o is not a version",
    (text) => {
      expect(parseVersion(text)).toBeUndefined();
    },
  );

  test("a prerelease comes before its release, releases by number", () => {
    const ordered = ["0.9.0", "0.10.0-a", "0.10.0-b", "0.10.0", "1.0.0.dev1", "1.0.0"];
    for (const [index, text] of ordered.entries()) {
      for (const [other, otherText] of ordered.entries()) {
        const order = Math.sign(compareVersions(parsed(text), parsed(otherText)));
        expect(order).toBe(Math.sign(index - other));
      }
    }
  });
});

describe("compatibility: the first rule that matches decides", () => {
  test.each([
    [{}, true, false, false],
    [{ client: "x" }, false, false, false],
    [{ schema: "x" }, false, false, false],
    // The minimum counts in releases of the Python library, not of this package.
    [{ clientMin: REFERENCE_VERSION }, true, false, false],
    [{ clientMin: "0.17.1" }, false, false, false],
    [{ clientMin: "0.18.0", schema: "1.0.0" }, false, false, false],
    [{ schema: "1.0.0" }, false, true, false],
    [{ lambda: "0.0.9" }, true, false, true],
    [{ lambda: "nonsense" }, true, false, true],
    [{ lambda: "0.1.0-rc1" }, true, false, false],
    [{ lambda: "0.2.0" }, true, false, false],
    [{ lambda: undefined }, true, false, false],
  ])(
    "versions that differ by %o are judged by the first rule that matches",
    (change, compatible, needsMigration, needsLambdaUpdate) => {
      expect(checkCompatibility({ ...FITTING, ...change })).toMatchObject({
        compatible,
        needsMigration,
        needsLambdaUpdate,
      });
    },
  );
});
