import { checkLimits, Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { type LimitStatus, statusOf } from "@zae-limiter/limiter/domain/limit-status.ts";
import { headersOf, ownStatuses } from "@zae-limiter/limiter/http/headers.ts";
import { describe, expect, test } from "vitest";

const [RPM, TPM, RPD] = checkLimits(["rpm:60", "tpm:1000", "rpd:5000/day"]) as readonly [
  Limit,
  Limit,
  Limit,
];

function status(entityId: string, limit: Limit): LimitStatus {
  const check = { entityId, resource: "http", limit, requested: 1 };
  return statusOf(check, limit.rate.capacityMilli, limit.rate);
}

function draft(...statuses: readonly LimitStatus[]): string[] {
  return headersOf(["draft"], { statuses, entityId: statuses[0]?.entityId ?? "", nowMs: 0 }).map(
    ({ value }) => value,
  );
}

describe("headers of the newest draft", () => {
  test("the policy of a list is not that of another list which begins with the same limit", () => {
    const both = draft(status("a", RPM), status("a", TPM));
    const other = draft(status("a", RPM), status("a", RPD));
    const alone = draft(status("a", RPM));
    expect(both).toEqual([
      '"rpm";q=60;w=60, "tpm";q=1000;w=60;zae-unit="tokens"',
      '"rpm";r=60;t=0, "tpm";r=1000;t=0',
    ]);
    expect(other[0]).toBe('"rpm";q=60;w=60, "rpd";q=5000;w=86400');
    expect(alone[0]).toBe('"rpm";q=60;w=60');
    expect(draft(status("b", RPM), status("b", TPM))).toEqual(both);
  });

  test("an ancestor with the same limit is named in the policy, whichever came first", () => {
    const own = [status("a", RPM), status("a", TPM)];
    const shown = [status("a", RPM), status("parent", TPM)];
    expect(draft(...own)[0]).toBe('"rpm";q=60;w=60, "tpm";q=1000;w=60;zae-unit="tokens"');
    expect(draft(...shown)[0]).toBe('"rpm";q=60;w=60, "parent/tpm";q=1000;w=60;zae-unit="tokens"');
    expect(draft(...own)[0]).toBe('"rpm";q=60;w=60, "tpm";q=1000;w=60;zae-unit="tokens"');
  });

  test("only statuses of the entity itself are shown where ancestors are not", () => {
    const own = [status("a", RPM), status("a", TPM)];
    expect(ownStatuses(own, "a")).toBe(own);
    expect(ownStatuses([...own, status("parent", RPM)], "a")).toEqual(own);
    expect(ownStatuses([status("parent", RPM)], "a")).toEqual([]);
    expect(ownStatuses([], "a")).toEqual([]);
  });
});

describe("headers of quotas", () => {
  const [MONTH, SESSION] = ["m:100/month Europe/Berlin", "s:50/session:5hour"].map((text) =>
    Limit.parse(text),
  ) as [Limit, Limit];
  const [startMs, endMs] = [Date.parse("2026-10-31T23:00Z"), Date.parse("2026-11-30T23:00Z")];
  const period = { startMs, endMs, usedMilli: 60_000, atMs: endMs - 90_500 };
  const check = { entityId: "a", resource: "http", requested: 1 };
  const used = statusOf({ ...check, limit: MONTH, period }, 40_000, MONTH.rate);
  const fresh = statusOf({ ...check, limit: SESSION }, 50_000, SESSION.rate);

  test("the window is the length of the period in force, and a token comes with the reset", () => {
    expect(draft(used, fresh)).toEqual([
      '"m";q=100;w=2592000, "s";q=50;w=18000',
      '"m";r=40;t=91, "s";r=50;t=0',
    ]);
    const december = { ...used, periodStartMs: endMs, resetsAtMs: Date.parse("2026-12-31T23:00Z") };
    expect(draft(december)[0]).toBe('"m";q=100;w=2678400');
  });

  test("older styles count to the reset", () => {
    const source = { statuses: [used, fresh], entityId: "a", nowMs: period.atMs };
    const values = (style: "draft-7" | "legacy") =>
      headersOf([style], source).map(({ value }) => value);
    expect(values("draft-7")).toEqual(["100;w=2592000", "limit=100, remaining=40, reset=91"]);
    expect(values("legacy")).toEqual(["100", "40", String(Math.ceil(period.atMs / 1000) + 91)]);
  });
});
