import { FastConsume } from "@zae-limiter/limiter/buckets/embedded/fast-consume.ts";
import { checkLimits, type Limit } from "@zae-limiter/limiter/domain/limit.ts";
import {
  grantedStatus,
  type LimitStatus,
  statusOf,
} from "@zae-limiter/limiter/domain/limit-status.ts";
import { draftOfGrant, headersOf, ownStatuses } from "@zae-limiter/limiter/http/headers.ts";
import fc from "fast-check";
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
  return headersOf(["draft"], { statuses, nowMs: 0 }).map(({ value }) => value);
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
    expect(ownStatuses(own)).toBe(own);
    expect(ownStatuses([...own, status("parent", RPM)])).toEqual(own);
    expect(ownStatuses([])).toEqual([]);
  });

  test("a grant has the same headers from its bucket as from its statuses", () => {
    const balance = fc.record({
      limit: fc.constantFrom(RPM, TPM, RPD),
      leftMilli: fc.oneof(
        fc.integer({ min: -5000, max: 5_000_000 }),
        fc.constantFrom(0, 999, 1000, 59_999, 60_000, 1_000_000),
      ),
    });
    const balances = fc.uniqueArray(balance, {
      minLength: 1,
      maxLength: 3,
      selector: ({ limit }) => limit.name,
    });
    fc.assert(
      fc.property(balances, (all) => {
        const limits = all.map(({ limit }) => limit);
        const config = { limits, source: "override" as const, version: 0 };
        const link = { parentId: undefined, cascade: false };
        const milli = [...limits.map(() => 1000), ...all.map(({ leftMilli }) => leftMilli)];
        const bucket = new FastConsume(true, "a", "http", config, link, milli);
        const statuses = all.map(({ limit, leftMilli }) => {
          const check = { entityId: "a", resource: "http", limit, requested: 1 };
          return grantedStatus(check, leftMilli, limit.rate);
        });
        expect(draftOfGrant(bucket)).toEqual(headersOf(["draft"], { statuses, nowMs: 0 }));
      }),
    );
  });
});
