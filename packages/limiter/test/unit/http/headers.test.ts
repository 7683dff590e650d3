import { checkLimits, type Limit } from "@zae-limiter/limiter/domain/limit.ts";
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
});
