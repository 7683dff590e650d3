/** Keeps every regular expression of the sources linear: strangers choose the texts they match. */

import { fileURLToPath } from "node:url";
import { orderOf } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { parseVersion } from "@zae-limiter/limiter/domain/version.ts";
import { growthOf, LINEAR_MAX } from "@zae-limiter/test-support/growth.ts";
import { describe, expect, test } from "vitest";
import {
  type BuiltPattern,
  builtPatternViolations,
  slowPatterns,
} from "./architecture/patterns.ts";
import { readSources, report, toSource } from "./architecture/source.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Patterns that are put together at run time, with parts that are ours. */
const BUILT: readonly BuiltPattern[] = [
  {
    path: "packages/aws/src/limits-resource/reply.ts",
    source:
      "^cloudformation-custom-resource-response-useast1\\." +
      "s3(?:[.-](?:dualstack\\.)?us-east-1)?\\.amazonaws\\.(?:com|com\\.cn|eu)$",
  },
  { path: "packages/aws/src/stack/deployed-table.ts", source: "\\bRateLimitsTable\\b" },
  { path: "packages/cli/src/terminal/drawing.ts", source: "(\\u001b\\[[0-9;]*m)" },
  { path: "packages/limiter/src/records/python-attributes.ts", source: "^b_.+_(?:gc|ws|wa|rsa)$" },
];

describe("the patterns of this project", () => {
  const files = readSources(ROOT);

  test("every pattern of the sources is linear", { timeout: 300_000 }, async () => {
    expect(report(await slowPatterns(files, BUILT))).toBe("");
  });

  test("every pattern that is built at run time is listed", () => {
    expect(report(builtPatternViolations(files, BUILT))).toBe("");
  });

  test("every pattern is found: a slash that is left in the code divides two values", () => {
    const left = files.filter(({ words }) => /(?<! )\/|\/(?![ =])/.test(words));
    expect(left.map(({ path }) => path)).toEqual([]);
  });
});

describe("the check of patterns", () => {
  const slow = async (text: string) => report(await slowPatterns([toSource("a.ts", text)]));

  test.each([
    ["const a = / +soft$/;", "/ +soft$/"],
    ["a.replace(/[^!-~]+(?=\\/|$)/g, '')", "/[^!-~]+(?=\\/|$)/g"],
    ["const trim = (a: string) => /^\\s+|\\s+$/.test(a)", "/^\\s+|\\s+$/"],
    ["return /^(a+)+$/.test(a)", "/^(a+)+$/"],
    ["a.match(/<[^>]*>/g)", "/<[^>]*>/g"],
    [`const a = \`\${b.replace(/\\/+$/, '')}\``, "/\\/+$/"],
  ])("a pattern that is not linear is found in %s", async (text, pattern) => {
    const found = await slow(`\n${text}\n`);
    expect(found).toContain(`a.ts:2 ${pattern} takes `);
    expect(found.split("\n")).toHaveLength(1);
  });

  test("linear patterns, and patterns within comments and texts, are none", async () => {
    const text =
      "// / +soft$/\n" + 'const a = "/ +soft$/";\nconst b = /^ *soft$/; const c = d / e / f;\n';
    expect(await slow(text)).toBe("");
  });

  test("a pattern that is built from parts is named until it is listed", () => {
    const files = [toSource("a.ts", "const a = new RegExp(b);\n")];
    expect(report(builtPatternViolations(files, []))).toMatch(/^a\.ts:1 a pattern that is built/);
    expect(report(builtPatternViolations(files, [{ path: "a.ts", source: "^b$" }]))).toBe("");
    expect(report(builtPatternViolations([], [{ path: "a.ts", source: "^b$" }]))).toContain(
      "no pattern",
    );
  });
});

/** Functions that once took quadratic time, each with the texts that did it. */
const READERS: readonly [string, (text: string) => unknown, (size: number) => string][] = [
  ["a limit with many spaces", Limit.parse, (size) => `rpm:1${" ".repeat(size)}hard`],
  ["a version of many parts", parseVersion, (size) => `1.2.3.dev${"+".repeat(size)}\n`],
  ["a sequence number of zeros", (text) => orderOf("", text), (size) => `${"0".repeat(size)}x`],
];

test.each(READERS)("%s is read or refused in linear time", (_, read, text) => {
  const attempt = (size: number) => {
    try {
      read(text(size));
    } catch (error) {
      expect(error).toBeInstanceOf(ValidationError);
    }
  };
  expect(growthOf(attempt, 2000)).toBeLessThan(LINEAR_MAX);
});
