import { inspect } from "node:util";
import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { describe, expect, test } from "vitest";

function status(fields: Partial<LimitStatus> = {}): LimitStatus {
  return {
    entityId: "test-entity",
    resource: "gpt-4",
    limitName: "tpm",
    limit: Limit.perMinute("tpm", 100),
    kind: "rate",
    available: 0,
    requested: 10,
    exceeded: true,
    retryAfterSeconds: 6.001,
    fullAfterSeconds: 60,
    deficit: 10,
    ...fields,
  };
}

const passed = status({ limitName: "rpm", exceeded: false, retryAfterSeconds: 0, deficit: 0 });

describe("violations", () => {
  test("a refusal without a violation is a mistake (A041)", () => {
    expect(() => new RateLimitExceeded([])).toThrow(ValidationError);
    expect(() => new RateLimitExceeded([passed])).toThrow(ValidationError);
  });

  test("the longest wait is the primary one; the first of equals (A042)", () => {
    const statuses = [5, 15, 10, 15].map((retryAfterSeconds, index) =>
      status({ retryAfterSeconds, limitName: `limit${index}` }),
    );
    const error = new RateLimitExceeded(statuses);
    expect(error.primaryViolation.limitName).toBe("limit1");
    expect(error.retryAfterSeconds).toBe(15);
    expect(error.violations).toHaveLength(4);
  });

  test("all limits checked are listed, passed and exceeded", () => {
    const error = new RateLimitExceeded([passed, status()]);
    expect(error.statuses).toHaveLength(2);
    expect(error.passed).toEqual([passed]);
    expect(error.violations.map((violation) => violation.limitName)).toEqual(["tpm"]);
  });

  test("a limit that never fits counts as the longest wait", () => {
    const never = status({ retryAfterSeconds: Number.POSITIVE_INFINITY, limitName: "never" });
    const error = new RateLimitExceeded([status({ retryAfterSeconds: 1e9 }), never]);
    expect(error.primaryViolation).toBe(never);
    expect(error.message).toContain("never fit");
  });
});

describe("message", () => {
  test("the message names entity, resource, limit and wait (A043)", () => {
    const { message } = new RateLimitExceeded([status({ retryAfterSeconds: 12.5 })]);
    for (const part of ["test-entity/gpt-4", "[tpm]", "12.5s"]) expect(message).toContain(part);
  });

  test("the message names each exceeded limit once, under the entity that has it", () => {
    const { message } = new RateLimitExceeded([
      status({ limitName: "rpm" }),
      status(),
      passed,
      status({ entityId: "parent", retryAfterSeconds: 60 }),
    ]);
    expect(message).toBe(
      "Rate limit exceeded for test-entity/gpt-4: [rpm, tpm], parent/gpt-4: [tpm], retry after 60.0s",
    );
  });
});

describe("JSON without parents", () => {
  const never = Number.POSITIVE_INFINITY;
  const parent = (retryAfterSeconds: number) =>
    status({ entityId: "secret", limit: Limit.perMinute("tpm", 4242), retryAfterSeconds });
  const passing = status({ entityId: "secret", limitName: "rpm", exceeded: false });

  test.each([
    [
      "only the entity refused",
      [status(), passing],
      "Rate limit exceeded for test-entity/gpt-4: [tpm], retry after 6.0s",
    ],
    [
      "only the parent refused",
      [passed, parent(60)],
      "Rate limit exceeded for test-entity/gpt-4, retry after 60.0s",
    ],
    [
      "both refused and the parent takes longer",
      [status(), parent(60)],
      "Rate limit exceeded for test-entity/gpt-4: [tpm], retry after 60.0s",
    ],
    [
      "the request never fits the parent",
      [status(), parent(never)],
      "Rate limit exceeded for test-entity/gpt-4: [tpm], the request can never fit",
    ],
    [
      "the request never fits the entity",
      [status({ retryAfterSeconds: never }), parent(60)],
      "Rate limit exceeded for test-entity/gpt-4: [tpm], the request is larger than the capacity of 100 and can never fit",
    ],
  ])("JSON without parents shows nothing of an ancestor when %s", (_, statuses, message) => {
    for (const refusal of [new RateLimitExceeded(statuses), new Refusal(statuses)]) {
      const json = refusal.toJSON({ parents: false });
      expect(json.message).toBe(message);
      expect(json.limits.map((limit) => limit.entity_id)).toEqual(["test-entity"]);
      expect(JSON.stringify(json)).not.toMatch(/secret|4242/);
      // The wait is that of the whole call, or a retry would be refused again.
      expect(json.retry_after_seconds).toBe(refusal.toJSON().retry_after_seconds);
      // `JSON.stringify` passes a key where the options would be.
      expect(JSON.parse(JSON.stringify({ refusal }))).toEqual({ refusal: refusal.toJSON() });
      expect(refusal.toJSON().limits).toHaveLength(2);
    }
  });
});

describe("a refusal and its error", () => {
  test.each([
    [0.001, "1", false],
    [6.001, "7", false],
    [Number.POSITIVE_INFINITY, "2147483647", true],
  ])(
    "a refusal and its error say the same about a wait of %d seconds",
    (retryAfterSeconds, header, neverFits) => {
      const statuses = [passed, status({ retryAfterSeconds })];
      for (const refusal of [new RateLimitExceeded(statuses), new Refusal(statuses)]) {
        expect(refusal).toMatchObject({ retryAfterHeader: header, neverFits, retryAfterSeconds });
      }
    },
  );
});

test("console.log of a refusal shows what was exceeded and when to come back", () => {
  const text = inspect(new Refusal([passed, status({ requested: 10, available: 3 })]));
  expect(text).toContain("Refusal {");
  expect(text).toContain("granted: false");
  expect(text).toContain("retryAfterSeconds: 6.001");
  expect(text).toContain("test-entity tpm: 10 requested, 3 of 100 left");
});

describe("JSON", () => {
  test("JSON carries what a client needs (A044)", () => {
    const error = new RateLimitExceeded([passed, status({ retryAfterSeconds: 7.5 })]);
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      error: "rate_limit_exceeded",
      message: error.message,
      retry_after_seconds: 7.5,
      retry_after_ms: 7500,
      limits: [
        expect.objectContaining({ limit_name: "rpm", exceeded: false, retry_after_seconds: 0 }),
        {
          entity_id: "test-entity",
          resource: "gpt-4",
          limit_name: "tpm",
          kind: "rate",
          capacity: 100,
          refill_amount: 100,
          refill_period_seconds: 60,
          available: 0,
          requested: 10,
          exceeded: true,
          retry_after_seconds: 7.5,
        },
      ],
    });
    expect(Object.keys(error.toJSON())).toEqual([
      "error",
      "message",
      "retry_after_seconds",
      "retry_after_ms",
      "limits",
    ]);
  });

  test.each([0.001, 1.001, 6.001, 60.001, 4.035, 1_000_000.001])(
    "%d seconds are exactly that many milliseconds",
    (retryAfterSeconds) => {
      const json = new RateLimitExceeded([status({ retryAfterSeconds })]).toJSON();
      expect(String(json.retry_after_ms)).toBe((retryAfterSeconds * 1000).toFixed(0));
    },
  );

  test("a wait without end is null, as JSON has no infinity", () => {
    const never = status({ retryAfterSeconds: Number.POSITIVE_INFINITY });
    const json = new RateLimitExceeded([never]).toJSON();
    expect(json).toMatchObject({ retry_after_seconds: null, retry_after_ms: null });
    expect(json.limits[0]?.retry_after_seconds).toBeNull();
  });
});

test.each([
  [0.1, "1"],
  [0.001, "1"],
  [1, "1"],
  [1.1, "2"],
  [1.9, "2"],
  [2.0, "2"],
  [60.001, "61"],
  [Number.POSITIVE_INFINITY, "2147483647"],
])("the header of %d seconds is %s: rounded up, at least 1 (A045)", (retryAfterSeconds, header) => {
  expect(new RateLimitExceeded([status({ retryAfterSeconds })]).retryAfterHeader).toBe(header);
});

describe("quotas", () => {
  const limit = Limit.parse("month:100/month Europe/Berlin");
  const resetsAtMs = Date.parse("2026-11-30T23:00Z");
  const spent = { limit, limitName: "month", kind: "quota", resetsAtMs } as const;

  test("a refusal by a quota says when it resets, in the time of its zone", () => {
    const error = new RateLimitExceeded([status({ ...spent, retryAfterSeconds: 3600 })]);
    expect(error.message).toBe(
      "Rate limit exceeded for test-entity/gpt-4: [month], " +
        "retry after 3600.0s (resets 2026-12-01 00:00 Europe/Berlin)",
    );
    const [json] = error.toJSON().limits;
    expect(json).toMatchObject({
      kind: "quota",
      resets_at_ms: resetsAtMs,
      resets_at: "2026-12-01T00:00:00+01:00",
    });
    expect(json).not.toHaveProperty("refill_amount");
    expect(json).not.toHaveProperty("refill_period_seconds");
  });

  test("a session that has not begun has no time in the JSON", () => {
    const session = Limit.parse("ses:100/session:5hour");
    const begun = { limit: session, limitName: "ses", kind: "session" } as const;
    const never = { retryAfterSeconds: Number.POSITIVE_INFINITY };
    const [json] = new RateLimitExceeded([status({ ...begun, ...never })]).toJSON().limits;
    expect(json).toMatchObject({ kind: "session", retry_after_seconds: null });
    expect(json).not.toHaveProperty("resets_at_ms");
  });
});
