/** The order and the problems of declared entities. */

import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import type { InvalidManifestError } from "@zae-limiter/limiter/manifest/problem.ts";
import { describe, expect, test } from "vitest";

function problemsOf(text: string) {
  try {
    parseManifest(text);
    return [];
  } catch (error) {
    return (error as InvalidManifestError).problems.map(
      ({ line, path, message }) => `${line} ${path.join(".")}: ${message}`,
    );
  }
}

describe("declared entities", () => {
  test("parents come before their children, and need no record of their own in the file", () => {
    const { records } = parseManifest(`
namespace: n
entities:
  d: { parent: c }
  c: { parent: b, cascade: true }
  b: { resources: { _default_: { limits: [rpm:1] } } }
  a: { parent: stored }
  e: { resources: { _default_: { limits: [rpm:1] } } }
`);
    expect([...records.keys()]).toEqual(["b", "c", "d", "a"]);
    expect(records.get("b")).toEqual({ limits: [] });
  });

  test("each circle is refused once, with the line of a parent in it", () => {
    const text = `
namespace: n
entities:
  x: { parent: a }
  a: { parent: b }
  b: { parent: a }
  self: { parent: self }
`;
    expect(problemsOf(text)).toEqual([
      '5 entities.a.parent: "a" would be its own ancestor: a, b, a',
      '7 entities.self.parent: "self" would be its own ancestor: self, self',
    ]);
  });

  test("a wrong parent and a wrong cascade are refused with their lines", () => {
    const text = `
namespace: n
entities:
  a:
    parent: no/slash
    cascade: yes
  b: { parent: }
`;
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^5 entities\.a\.parent: /),
      '6 entities.a.cascade: expected true or false, got "yes"',
      expect.stringMatching(/^7 entities\.b\.parent: .*null/),
    ]);
  });

  test("10,000 entities in one chain are ordered without a deep stack", () => {
    const links = Array.from({ length: 10_000 }, (_, at) => [`e${at}`, { parent: `e${at + 1}` }]);
    const text = JSON.stringify({ namespace: "n", entities: Object.fromEntries(links) });
    expect([...parseManifest(text).records.keys()].at(-1)).toBe("e0");
  });
});
