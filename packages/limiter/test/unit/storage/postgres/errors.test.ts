import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { lateError, postgresError } from "@zae-limiter/limiter/storage/postgres/errors.ts";
import { describe, expect, it } from "vitest";

const AT = { place: "postgres://db:5432/main", schema: "zae_limiter" };

function coded(code: string, details: object = {}): Error {
  return Object.assign(new Error(`a test of ${code}`), { code, ...details });
}

function judged(error: unknown, wasSent = true) {
  const found = postgresError(error, AT, wasSent) as RateLimiterUnavailable;
  expect(found).toBeInstanceOf(RateLimiterUnavailable);
  expect(found.cause).toBe(error);
  expect(found.message).toContain(AT.place);
  return { reason: found.reason, nothingWritten: found.nothingWritten };
}

describe("errors of PostgreSQL", () => {
  it.each(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "CONNECT_TIMEOUT", "P1001", "P2024"])(
    "%s says that nothing was sent",
    (code) => {
      expect(judged(coded(code))).toEqual({ reason: "network", nothingWritten: true });
    },
  );

  it.each(["53300", "57P03", "08001", "08004", "53100", "53200", "58030", "XX000", "25006"])(
    "%s is a failure of the server that wrote nothing",
    (code) => {
      expect(judged(coded(code))).toEqual({ reason: "server", nothingWritten: true });
    },
  );

  it.each([
    ["55P03", "timeout"],
    ["57014", "timeout"],
    ["40P01", "throttled"],
    ["40001", "throttled"],
  ])("%s was rolled back", (code, reason) => {
    expect(judged(coded(code))).toEqual({ reason, nothingWritten: true });
  });

  it.each(["57P01", "57P02", "57P05", "08006", "08003", "08P01"])(
    "%s after sending leaves the outcome unknown",
    (code) => {
      expect(judged(coded(code))).toEqual({ reason: "server", nothingWritten: false });
      expect(judged(coded(code), false)).toEqual({ reason: "server", nothingWritten: true });
    },
  );

  it.each(["ECONNRESET", "EPIPE", "CONNECTION_CLOSED", "P1017"])(
    "%s after sending leaves the outcome unknown, of whichever client it is",
    (code) => {
      expect(judged(coded(code))).toEqual({ reason: "network", nothingWritten: false });
    },
  );

  it("a text without a code leaves the outcome unknown, but for those of connecting", () => {
    const ended = new Error("Connection terminated unexpectedly");
    expect(judged(ended).nothingWritten).toBe(false);
    expect(judged(ended, false).nothingWritten).toBe(true);
    expect(judged(new Error("timeout exceeded when trying to connect")).nothingWritten).toBe(true);
  });

  it.each([
    ["Prisma", coded("P2010", { meta: { code: "55P03", message: "lock" } })],
    [
      "an adapter of Prisma",
      coded("P2010", { meta: { driverAdapterError: { cause: { originalCode: "55P03" } } } }),
    ],
    ["Drizzle", new Error("Failed query", { cause: coded("55P03") })],
  ])("the code of the server is found where %s puts it", (_, error) => {
    expect(judged(error)).toEqual({ reason: "timeout", nothingWritten: true });
  });

  it.each(["42P01", "3F000", "42883"])("%s names both ways to create the schema", (code) => {
    const found = postgresError(coded(code), AT, true);
    expect(found).toBeInstanceOf(InfrastructureNotFoundError);
    expect(found.message).toMatch(/db migrate.*db sql/s);
  });

  it("a database that is missing is said to be missing", () => {
    const found = postgresError(coded("3D000"), AT, false);
    expect(found).toBeInstanceOf(InfrastructureNotFoundError);
    expect(found.message).toContain("Create the database first");
  });

  it.each([
    ["28P01", /did not accept the user or password/],
    ["42501", /may not use the schema "zae_limiter".*--grant/s],
    ["0A000", /refused a request \(0A000\)/],
    ["22P02", /refused a request \(22P02\)/],
  ])("%s is refused, and waiting does not help", (code, sentence) => {
    const found = postgresError(coded(code), AT, true);
    expect(found).toBeInstanceOf(InfrastructureError);
    expect(found).not.toBeInstanceOf(RateLimiterUnavailable);
    expect(found.message).toMatch(sentence);
  });

  it("a deadline before sending wrote nothing, and one after it may have", () => {
    expect(lateError(AT, 2000.4, false)).toMatchObject({ reason: "timeout", nothingWritten: true });
    expect(lateError(AT, 2000, true)).toMatchObject({ reason: "timeout", nothingWritten: false });
  });
});
