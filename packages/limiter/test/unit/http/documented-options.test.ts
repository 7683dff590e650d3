import { readFileSync } from "node:fs";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { ANY } from "@zae-limiter/limiter/domain/options.ts";
import { checkHttpOptions, type HttpOptions } from "@zae-limiter/limiter/http/options.ts";
import { expect, test } from "vitest";

const GUIDE = new URL("../../../../../docs/guide/http.md", import.meta.url);

/** The names that an unknown option is answered with. */
function knownOptions(): readonly string[] {
  try {
    const ofAdapters = { hook: { check: ANY }, getConnInfo: { check: ANY } };
    checkHttpOptions({ unknown: 1 } as HttpOptions<unknown>, ofAdapters);
  } catch (error) {
    if (error instanceof ValidationError)
      return error.reason.split("expected ")[1]?.split(", ") ?? [];
  }
  return [];
}

test("the table of the guide has every option of the adapters, and no other", () => {
  const section = readFileSync(GUIDE, "utf8").split("## Options")[1]?.split("\n## ")[0] ?? "";
  const documented = [...section.matchAll(/^\| `(\w+)/gm)].map(([, name]) => name);
  expect(knownOptions()).toContain("limits");
  expect(documented.toSorted()).toEqual([...knownOptions()].toSorted());
});
