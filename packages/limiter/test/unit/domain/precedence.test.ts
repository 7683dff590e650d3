import { checkOnUnavailable } from "@zae-limiter/limiter/domain/errors/unavailability.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  CONFIG_LEVELS,
  type ConfigSource,
  chooseLimits,
} from "@zae-limiter/limiter/domain/precedence.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

type Stored = Partial<Record<ConfigSource, readonly Limit[]>>;

const choose = (stored: Stored) => chooseLimits((level) => ({ limits: stored[level] ?? [] }));
const limits = (text: string) => [Limit.parse(text)];

describe("chooseLimits", () => {
  test("chooseLimits goes from specific to general", () => {
    expect(CONFIG_LEVELS).toEqual([
      "entity",
      "entity_default",
      "parent",
      "parent_default",
      "resource",
      "system",
    ]);
  });

  test.each(CONFIG_LEVELS.map((level, index) => [level, index] as const))(
    "%s wins over all that is more general, as a whole",
    (source, index) => {
      const stored: Stored = {};
      for (const level of CONFIG_LEVELS.slice(index)) stored[level] = limits(`${level}:5`);
      const chosen = choose(stored);
      expect(chosen?.source).toBe(source);
      expect(chosen?.limits.map((limit) => limit.name)).toEqual([source]);
    },
  );

  test("an empty list of limits is as good as none", () => {
    expect(choose({ entity: [], resource: [], system: limits("rpm:1") })?.source).toBe("system");
    expect(choose({ entity: [], system: [] })).toBeUndefined();
    expect(choose({})).toBeUndefined();
  });

  test("a level that has only limits which cannot be enforced wins too", () => {
    const unsupported = [{ name: "rpd", kind: "calendar quota" }] as const;
    const chosen = chooseLimits((level) =>
      level === "resource" ? { limits: [], unsupported } : { limits: limits("rpm:1") },
    );
    expect(chosen?.source).toBe("entity");
    const own = chooseLimits((level) =>
      level === "entity" ? { limits: [], unsupported } : { limits: limits("rpm:1") },
    );
    expect(own).toEqual({ limits: [], unsupported, source: "entity" });
  });

  test("chooseLimits does not look further than it must", () => {
    const asked: ConfigSource[] = [];
    chooseLimits((level) => {
      asked.push(level);
      return level === "entity_default" ? { limits: limits("rpm:1") } : undefined;
    });
    expect(asked).toEqual(["entity", "entity_default"]);
  });
});

describe("checkOnUnavailable", () => {
  test("the option onUnavailable knows two modes", () => {
    expect(checkOnUnavailable("allow")).toBe("allow");
    expect(checkOnUnavailable("block")).toBe("block");
    for (const value of ["ALLOW", "", undefined, null, true, "constructor"]) {
      const error = refusal(() => checkOnUnavailable(value));
      expect(error.field).toBe("on_unavailable");
      expect(error.reason).toContain('expected "allow" or "block", got');
    }
  });
});
