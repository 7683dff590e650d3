/** The validator: what it accepts, what it refuses, and on which line. */

import { readFileSync } from "node:fs";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { InvalidManifestError } from "@zae-limiter/limiter/manifest/problem.ts";
import { describe, expect, test } from "vitest";

/** `3:5 resources.gpt-4: message`, per problem. */
function problemsOf(text: string): string[] {
  try {
    parseManifest(text);
  } catch (error) {
    if (!(error instanceof InvalidManifestError)) throw error;
    return error.problems.map(({ line, column, path, message }) => {
      const where = path.length === 0 ? "" : `${path.join(".")}: `;
      return `${line}:${column} ${where}${message}`;
    });
  }
  return [];
}

const lines = (...text: string[]) => `${text.join("\n")}\n`;
const limitsOf = (declaration: string) =>
  parseManifest(`namespace: n\nsystem: { limits: { rpm: ${declaration} } }`).system?.limits;

describe("a manifest that is accepted", () => {
  test("a manifest may have every level", () => {
    const manifest = parseManifest(
      lines(
        "namespace: tenant-a",
        "system:",
        "  on_unavailable: block",
        "  limits:",
        "    rpm: { capacity: 1000 }",
        "resources:",
        "  openai/gpt-4:",
        "    limits:",
        "      tpm: { capacity: 50000, refill_amount: 25000, refill_period: 30 }",
        "      rpm: { capacity: 500 }",
        "entities:",
        "  user-1:",
        "    resources:",
        "      _default_: { limits: { rpm: { capacity: 5 } } }",
        "      gpt-4: { limits: { rpm: { capacity: 7 } } }",
      ),
    );
    expect(manifest.namespace).toBe("tenant-a");
    expect(manifest.system?.onUnavailable).toBe("block");
    expect(manifest.system?.limits.map(String)).toEqual(["rpm:1000/min"]);
    expect(manifest.resources.get("openai/gpt-4")?.limits.map(String)).toEqual([
      "rpm:500/min",
      "tpm:25000/30sec:50000",
    ]);
    const entity = manifest.entities.get("user-1");
    expect([...(entity?.keys() ?? [])]).toEqual(["_default_", "gpt-4"]);
  });

  test("names that state a period have it by default, and a printed file says so", () => {
    const text =
      "{ namespace: n, system: { limits: { rpd: { capacity: 5 }, rps: { capacity: 2 } } } }";
    const manifest = parseManifest(text);
    expect(manifest.system?.limits.map(String)).toEqual(["rpd:5/day", "rps:2/sec"]);
    // The Python library reads the same file, and knows no period by name.
    expect(printManifest(manifest)).toContain("rpd: { capacity: 5, refill_period: 86400 }");
    const minutes = parseManifest(text.replace("capacity: 5", "capacity: 5, refill_period: 60"));
    expect(printManifest(minutes)).toContain("rpd: { capacity: 5, refill_period: 60 }");
  });

  test("the refill is the capacity per minute by default, and a burst is the capacity (op 43)", () => {
    expect(limitsOf("{ capacity: 1000 }")?.map(String)).toEqual(["rpm:1000/min"]);
    expect(limitsOf("{ capacity: 1000, burst: 1500 }")?.map(String)).toEqual(["rpm:1500/min"]);
    const given = limitsOf("{ capacity: 1000, burst: 1500, refill_amount: 10 }");
    expect(given?.map(String)).toEqual(["rpm:10/min:1500"]);
  });

  test("a manifest that is accepted is the one in the documents", () => {
    const page = readFileSync(
      new URL("../../../../../docs/reference/limits-file.md", import.meta.url),
      "utf8",
    );
    const [, example = ""] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const { resources, entities } = parseManifest(example);
    expect([resources.size, entities.get("key-1")?.size]).toEqual([1, 2]);
  });

  test("a manifest may be written in JSON", () => {
    const json = JSON.stringify({ namespace: "n", resources: {} });
    expect(parseManifest(json).namespace).toBe("n");
  });

  test("a manifest that is accepted has names that look like numbers or words of YAML", () => {
    const names = ["007", "1e3", "true", "12", "constructor"];
    const entity = "{ resources: { on: { limits: { no: { capacity: 1 } } } } }";
    const { entities } = parseManifest(
      lines("namespace: n", "entities:", ...names.map((name) => `  ${name}: ${entity}`)),
    );
    expect([...entities.keys()].sort()).toEqual(names.sort());
    expect([...(entities.get("007")?.keys() ?? [])]).toEqual(["on"]);
  });

  test("a manifest that is accepted may share what it says by anchors", () => {
    const { resources } = parseManifest(
      lines(
        "namespace: n",
        "resources:",
        "  a: { limits: &common { rpm: { capacity: 1 } } }",
        "  b: { limits: { <<: *common, tpm: { capacity: 2 } } }",
        "  c: { limits: *common }",
      ),
    );
    expect(resources.get("b")?.limits.map(String)).toEqual(["rpm:1/min", "tpm:2/min"]);
    expect(resources.get("c")?.limits.map(String)).toEqual(["rpm:1/min"]);
  });
});

describe("a manifest that is refused", () => {
  test("a manifest whose limits are texts says in which line one is wrong", () => {
    const texts = lines(
      "namespace: n",
      "system:",
      "  limits:",
      "    - rpm:60",
      "    - tpm:x",
      "    - rpm:5/min",
    );
    const [wrong, twice] = problemsOf(texts);
    expect(wrong).toMatch(/^5:7 system\.limits\.1: /);
    expect(twice).toBe("6:7 system.limits.2: the limit rpm is in the list twice");
  });

  test("a manifest that is refused is no mapping (op 39)", () => {
    expect(problemsOf("- a\n- b\n")).toEqual(["1:1 expected a mapping, got an array"]);
    expect(problemsOf("")).toEqual(["1:1 expected a mapping, got null"]);
    expect(problemsOf("words")).toEqual(['1:1 expected a mapping, got "words"']);
  });

  test("a manifest that is refused has no namespace (op 44)", () => {
    expect(problemsOf("resources: {}\n")).toEqual([
      "1:1 the namespace is missing; write namespace: and its name",
    ]);
    expect(problemsOf('namespace: ""\n')).toEqual(["1:12 namespace: must not be empty"]);
    expect(problemsOf("namespace: _\n")).toEqual(['1:12 namespace: "_" is reserved']);
    expect(problemsOf("namespace: 5\n")).toEqual(["1:12 namespace: expected text, got 5"]);
  });

  test("a manifest that is refused is no YAML, has a name twice, or is several documents", () => {
    expect(problemsOf("namespace: n\nresources: { a\n")[0]).toMatch(/^3:1 /);
    expect(problemsOf("namespace: n\nsystem: {}\nsystem: {}\n")).toEqual([
      "3:1 this name is already there; each may be declared once",
    ]);
    expect(problemsOf("namespace: n\n---\nnamespace: m\n")).toEqual([
      "2:1 expected one document; write one file per namespace",
    ]);
  });

  test("a refused manifest has unknown names reported at their positions", () => {
    const text = lines(
      "namespace: n",
      "sytem: {}",
      "system:",
      "  onUnavailable: allow",
      "  limits: { rpm: { capacity: 1, period: 5 } }",
    );
    expect(problemsOf(text)).toEqual([
      '2:1 sytem: there is no "sytem" here; expected one of ' +
        "namespace, replace_kind, system, resources, entities",
      '4:3 system.onUnavailable: there is no "onUnavailable" here; ' +
        "expected one of on_unavailable, limits",
      '5:33 system.limits.rpm.period: there is no "period" here; ' +
        "expected one of capacity, refill_amount, refill_period, burst, soft, alerts, schedule, " +
        "quota, session_seconds, reset_schedule, reset_after_seconds, concurrent",
    ]);
  });

  test("a manifest that is refused has all its problems reported at once, in the order of the lines", () => {
    const text = lines(
      "namespace: n",
      "entities:",
      "  a b:",
      "    resources:",
      "      gpt#4:",
      "        limits:",
      "          wcu:",
      "            capacity: 0",
      "resources:",
      "  gpt-4:",
      "    limits:",
      "      rpm: 100",
      "      tpm:",
      "        capacity: 1.5",
      "        refill_period: 2000000000",
      "system:",
      "  on_unavailable: maybe",
    );
    expect(problemsOf(text).map((problem) => problem.replace(/(.{0,75}).*/, "$1"))).toEqual([
      expect.stringMatching(/^3:3 entities\.a b: must start with a letter or digit/),
      expect.stringMatching(/^5:7 entities\.a b\.resources\.gpt#4: must not contain "#"/),
      expect.stringMatching(/^7:11 .*\.wcu: "wcu" is reserved/),
      expect.stringMatching(/^8:23 .*\.capacity: must be pos/),
      expect.stringMatching(/^12:12 resources\.gpt-4\.limits\.rpm: expected a mapping, got 100/),
      expect.stringMatching(/^14:19 .*tpm\.capacity: expected a whole number/),
      expect.stringMatching(/^15:24 .*tpm\.refill_period: must be at most/),
      expect.stringMatching(/^17:19 system\.on_unavailable: expected "allow" or "block"/),
    ]);
  });

  test("a wrong name is one problem, and its value is checked all the same", () => {
    const text = "namespace: n\nsystem:\n  limits:\n    1rpm: { capacity: 5 }\n";
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/^4:5 system\.limits\.1rpm: must start/),
    ]);
    expect(problemsOf(text.replace("5", "0"))).toEqual([
      expect.stringMatching(/^4:5 .*must start/),
      expect.stringMatching(/^4:\d+ .*capacity: must be/),
    ]);
  });

  test("a manifest that is refused says nothing where something belongs", () => {
    expect(problemsOf("namespace: n\nresources:\n")).toEqual([
      "2:11 resources: expected a mapping, got null; write {} for none",
    ]);
    expect(problemsOf("namespace: n\nsystem: { limits: {} }\n")).toEqual([
      "2:1 system: expected limits or on_unavailable; leave it out to have neither",
    ]);
    expect(problemsOf("namespace: n\nresources:\n  a: {}\n  b: { limits: {} }\n")).toEqual([
      "3:3 resources.a: expected limits; leave it out to have none here",
      "4:8 resources.b.limits: expected at least one of the limits; leave it out to have none here",
    ]);
    expect(problemsOf("namespace: n\nentities: { a: { resources: {} } }\n")).toHaveLength(1);
    expect(problemsOf("namespace: n\nsystem: { limits: { rpm: {} } }\n")).toEqual([
      "2:21 system.limits.rpm: the capacity is missing; write capacity: and a whole number",
    ]);
  });

  test.each([
    ["burst: 3", "a limit with concurrent has no burst"],
    ["refill_period: 3", "a limit with concurrent has no refill_period"],
    ["schedule: [{ when: 9-18, scale: 2 }]", "a limit with concurrent has no schedule"],
    ["alerts: [80]", "only quotas and sessions have alerts"],
    ["quota: { amount: 5, every: day }", "it has quota already"],
  ])("slots with %s are refused, and the problem names it", (field, problem) => {
    const text = `namespace: n\nsystem: { limits: { p: { capacity: 5, concurrent: true, ${field} } } }\n`;
    expect(problemsOf(text)).toEqual([expect.stringContaining(problem)]);
  });

  test.each([
    ["every: fortnight", 'quota.every: expected "day" or'],
    ["on: 15", 'quota.every: expected "day" or'],
    ["every: day, carry: rest", "quota.carry_max: expected a whole number, got undefined"],
    ["every: day, carry_max: 3", 'quota.carry_max: only carry "rest" and "both"'],
    ["every: day, time_zone: Berlin", 'quota.time_zone: there is no time zone "Berlin"'],
    ["every: month, cron: 0 0 1 * *", "quota.every: a quota with cron has no every"],
    ["at: 06:00, cron: 0 0 1 * *", "quota.at: a quota with cron has no at"],
  ])("a quota with %s is refused at the field that is wrong", (fields, problem) => {
    const text = `namespace: n\nsystem: { limits: { q: { quota: { amount: 5, ${fields} } } } }\n`;
    expect(problemsOf(text)).toEqual([expect.stringContaining(`system.limits.q.${problem}`)]);
  });

  test("an amount and a length that are wrong are named as the file names them", () => {
    const text = (limit: string) => `namespace: n\nsystem: { limits: { q: ${limit} } }\n`;
    expect(problemsOf(text("{ quota: { amount: 5.5, every: day } }"))).toEqual([
      "2:43 system.limits.q.quota.amount: expected a whole number, got 5.5",
    ]);
    expect(problemsOf(text("{ capacity: 5, session_seconds: 0 }"))).toEqual([
      "2:56 system.limits.q.session_seconds: must be positive, got 0",
    ]);
    expect(problemsOf(text("{ capacity: 0, session_seconds: 9 }"))).toEqual([
      "2:36 system.limits.q.capacity: must be positive, got 0",
    ]);
  });

  test("slots are declared by true, and the problem says so", () => {
    const text = "namespace: n\nsystem: { limits: { p: { capacity: 5, concurrent: yes } } }\n";
    expect(problemsOf(text)).toEqual([
      expect.stringContaining('concurrent is true or absent, got "yes"'),
    ]);
  });

  test("a text in place of the fields of a limit is refused with the list that takes it", () => {
    expect(problemsOf("namespace: n\nsystem: { limits: { req: 5/month UTC } }\n")).toEqual([
      '2:26 system.limits.req: expected a mapping, got "5/month UTC"; ' +
        "limits as texts are a list: limits: ['req:5/month UTC']",
    ]);
  });

  test("a problem in a part from an anchor is shown at the alias", () => {
    const text = lines(
      "namespace: n",
      "resources:",
      "  a: { limits: &bad { rpm: { capacity: -1 } } }",
      "  b:",
      "    limits: *bad",
    );
    expect(problemsOf(text).map((problem) => problem.split(" ")[0])).toEqual(["3:40", "3:40"]);
  });

  test("a manifest that grows without bounds is refused", () => {
    const rows = Array.from({ length: 12 }, (_, row) => {
      const before = row === 0 ? '"x"' : `*r${row - 1}`;
      return `r${row}: &r${row} [${Array(9).fill(before).join(", ")}]`;
    });
    expect(problemsOf(lines(...rows))[0]).toMatch(/^1:1 Excessive alias count/);
  });
});

describe("a manifest with many names", () => {
  const FEW = 2000;
  const named = (count: number, content: string) =>
    lines(
      "namespace: n",
      "entities:",
      ...Array.from({ length: count }, (_, at) => `  user-${at}: ${content}`),
    );
  const cpuMs = (work: () => unknown) => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };

  test("a manifest with many names takes time in proportion to its length, also when every line is wrong", () => {
    const [few, many] = [named(FEW, "{}"), named(10 * FEW, "{}")];
    expect(problemsOf(few)).toHaveLength(FEW);
    const shortMs = cpuMs(() => problemsOf(few));
    // Ten times the names, compared with each other, would take a hundred times as long.
    expect(cpuMs(() => problemsOf(many))).toBeLessThan(30 * shortMs);
  });

  test("a manifest with many names has a name twice, far apart and in a mapping of its own", () => {
    const twice = `${named(1000, "{}")}  user-7: {}\n`;
    expect(problemsOf(twice)).toEqual([
      "1003:3 this name is already there; each may be declared once",
    ]);
    const nested = lines("namespace: n", "system: { limits: { a: {}, b: {}, a: {} }, limits: {} }");
    expect(problemsOf(nested)[0]).toMatch(/^2:35 this name is already there/);
  });
});
