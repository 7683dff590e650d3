import * as commonErrors from "@zae-limiter/limiter/domain/errors/errors.ts";
import { isLimiterError } from "@zae-limiter/limiter/domain/errors/limiter-error.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import * as versionErrors from "@zae-limiter/limiter/domain/errors/version-errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describe, expect, test } from "vitest";

const errors = { ...commonErrors, ...versionErrors };

const {
  DamagedRecordError,
  EntityExistsError,
  EntityNotFoundError,
  IncompatibleSchemaError,
  InfrastructureError,
  InfrastructureNotFoundError,
  InvalidIdentifierError,
  InvalidNameError,
  LeaseExpiredError,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimiterUnavailable,
  RateLimitError,
  ResourceDisabled,
  StackAlreadyExistsError,
  StackOperationError,
  ValidationError,
  VersionMismatchError,
  ZaeLimiterError,
} = errors;

const versions = { clientVersion: "0.1.0", schemaVersion: "0.11.0", message: "Update it." };
const refused = new RateLimitExceeded([
  {
    entityId: "key-1",
    resource: "gpt-4",
    limitName: "rpm",
    limit: Limit.perMinute("rpm", 100),
    kind: "rate",
    available: 0,
    requested: 1,
    exceeded: true,
    retryAfterSeconds: 1,
    fullAfterSeconds: 60,
    deficit: 1,
  },
]);

/** One error of each class, with its line of ancestors. */
const TREE = [
  [refused, "RateLimitExceeded > RateLimitError"],
  [new LeaseExpiredError(), "LeaseExpiredError > RateLimitError"],
  [new ResourceDisabled("key-1", "gpt-4", "entity"), "ResourceDisabled > RateLimitError"],
  [new RateLimiterUnavailable("down"), "RateLimiterUnavailable > InfrastructureError"],
  [new StackOperationError("s", "why"), "StackOperationError > InfrastructureError"],
  [new StackAlreadyExistsError("s"), "StackAlreadyExistsError > InfrastructureError"],
  [new InfrastructureNotFoundError("s"), "InfrastructureNotFoundError > InfrastructureError"],
  [new NamespaceNotFoundError("n"), "NamespaceNotFoundError > InfrastructureError"],
  [new NamespaceStateError("deleted"), "NamespaceStateError > InfrastructureError"],
  [new DamagedRecordError("key", "rf", "is text"), "DamagedRecordError > InfrastructureError"],
  [new EntityNotFoundError("e"), "EntityNotFoundError > EntityError"],
  [new EntityExistsError("e"), "EntityExistsError > EntityError"],
  [new VersionMismatchError(versions), "VersionMismatchError > VersionError"],
  [new IncompatibleSchemaError(versions), "IncompatibleSchemaError > VersionError"],
  [new ValidationError("f", "v", "why"), "ValidationError"],
  [new InvalidIdentifierError("f", "v", "why"), "InvalidIdentifierError > ValidationError"],
  [new InvalidNameError("f", "v", "why"), "InvalidNameError > ValidationError"],
] as const;

function lineage(error: object): string {
  const names: string[] = [];
  let prototype: unknown = Object.getPrototypeOf(error);
  while (prototype instanceof Error && prototype.constructor !== ZaeLimiterError) {
    names.push(prototype.constructor.name);
    prototype = Object.getPrototypeOf(prototype);
  }
  return names.join(" > ");
}

describe("the tree", () => {
  test.each(TREE)("the error %s stands at its place in the tree", (error, expected) => {
    expect(lineage(error)).toBe(expected);
    expect(error).toBeInstanceOf(ZaeLimiterError);
    expect(error).toBeInstanceOf(Error);
    expect(error.code).toMatch(/^ZAEL_[A-Z_]+$/);
    expect(error.name).toBe(expected.split(" > ")[0]);
    expect(error.stack).toContain(`${error.name}: ${error.message}`);
    expect(error.message).not.toBe("");
  });

  test("every class of the file is in it, and no two have the same code", () => {
    const abstractOnes = ["ZaeLimiterError", "RateLimitError", "InfrastructureError"];
    const named = new Set<string>([
      ...TREE.map(([error]) => error.constructor.name),
      ...abstractOnes,
      "EntityError",
      "VersionError",
      "RateLimitExceeded",
    ]);
    expect(Object.keys(errors).filter((name) => !named.has(name))).toEqual([]);
    expect(new Set(TREE.map(([error]) => error.code)).size).toBe(TREE.length);
  });
});

describe("ValidationError", () => {
  test("ValidationError keeps 50 characters of a long value, and says field and reason (A033)", () => {
    const error = new ValidationError("entity_id", "x".repeat(100), "must be shorter");
    expect(error.value).toBe(`${"x".repeat(50)}...`);
    expect(error).toMatchObject({ field: "entity_id", reason: "must be shorter" });
    expect(error.message).toBe("Invalid entityId: must be shorter");
    expect(new ValidationError("f", "x".repeat(50), "r").value).toBe("x".repeat(50));
  });

  test("ValidationError cuts between characters, not within one", () => {
    expect(new ValidationError("f", "😀".repeat(51), "r").value).toBe(`${"😀".repeat(50)}...`);
    expect(new ValidationError("f", "😀".repeat(50), "r").value).toBe("😀".repeat(50));
    expect(new ValidationError("f", `x${"😀".repeat(60)}`, "r").value).toBe(
      `x${"😀".repeat(49)}...`,
    );
  });

  test.each([
    [undefined, "undefined"],
    [null, "null"],
    [5n, "5"],
    [Symbol("s"), "Symbol(s)"],
    [{ a: 1 }, '{"a":1}'],
    [[1, 2], "[1,2]"],
    [{ a: 1n }, "[object Object]"],
    [Object.create(null), "{}"],
  ])("ValidationError shows %o as text", (value, text) => {
    expect(new ValidationError("f", value, "r").value).toBe(text);
  });

  test("ValidationError shows even what cannot be shown", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(new ValidationError("f", circle, "r").value).toBe("[object Object]");
    const hostile = {
      toJSON: () => undefined,
      toString: () => {
        throw new Error("no");
      },
    };
    expect(new ValidationError("f", hostile, "r").value).toBe("[object Object]");
  });

  test("a ValidationError keeps its cause", () => {
    const cause = new TypeError("bad URL");
    expect(new ValidationError("url", "x", "r", { cause }).cause).toBe(cause);
  });
});

describe("infrastructure", () => {
  test("an infrastructure error names only the context it has (A046)", () => {
    const error = new RateLimiterUnavailable("m", { stackName: "s" });
    expect(error.message).toBe("m [stack=s]");
    expect(error.message).not.toMatch(/entity=|resource=/);
    const full = new RateLimiterUnavailable("m", { stackName: "s", entityId: "e", resource: "r" });
    expect(full.message).toBe("m [stack=s, entity=e, resource=r]");
    expect(full).toMatchObject({ stackName: "s", entityId: "e", resource: "r" });
    expect(new RateLimiterUnavailable("m").message).toBe("m");
  });

  test("an unavailable store is no rate limit (A047)", () => {
    const error = new RateLimiterUnavailable("m");
    expect(error).toBeInstanceOf(InfrastructureError);
    expect(error).not.toBeInstanceOf(RateLimitError);
  });

  test("a stack that is there is no failed operation (A048)", () => {
    expect(new StackAlreadyExistsError("s")).not.toBeInstanceOf(StackOperationError);
  });

  test("an unknown outcome is the careful assumption", () => {
    const cause = new Error("socket hang up");
    const error = new RateLimiterUnavailable("m", { cause, reason: "network" });
    expect(error).toMatchObject({ nothingWritten: false, reason: "network", cause });
    expect(new RateLimiterUnavailable("m", { nothingWritten: true }).nothingWritten).toBe(true);
    expect("cause" in new RateLimiterUnavailable("m")).toBe(false);
  });

  test("messages carry what helps", () => {
    const events = [{ resource: "Table", status: "CREATE_FAILED", reason: "quota" }];
    const failed = new StackOperationError("app", "it failed", events);
    expect(failed.message).toBe('Stack "app": it failed');
    expect(failed.events).toBe(events);
    expect(new StackAlreadyExistsError("app").message).toContain('"app"');
    expect(new InfrastructureNotFoundError("app").message).toContain(
      "zae-limiter stack deploy --name app",
    );
    expect(new NamespaceNotFoundError("ten").message).toContain('"ten"');
    expect(
      new NamespaceStateError("is being purged", { namespaceName: "ten", state: "purging" }),
    ).toMatchObject({ message: "is being purged", namespaceName: "ten", state: "purging" });
    expect(new NamespaceStateError("m")).toMatchObject({ namespaceName: "", state: "" });
  });
});

test("entities that are missing or there are named", () => {
  expect(new EntityNotFoundError("key-1").message).toMatch(/key-1.*not found/);
  expect(new EntityExistsError("key-1").message).toMatch(/key-1.*already exists/);
  expect(new EntityExistsError("key-1").entityId).toBe("key-1");
});

test("versions: an unknown Lambda is unknown, the guide is named only when there is one (A049)", () => {
  expect(new VersionMismatchError(versions).message).toContain("lambda unknown");
  expect(new VersionMismatchError(versions).canAutoUpdate).toBe(false);
  const known = new VersionMismatchError({ ...versions, lambdaVersion: "0.0.9" });
  expect(known.message).toMatch(/0\.1\.0.*0\.11\.0.*0\.0\.9.*Update it\./);
  expect(new IncompatibleSchemaError(versions).message).not.toContain("See:");
  const guided = new IncompatibleSchemaError({ ...versions, migrationGuideUrl: "guide.md" });
  expect(guided.message).toContain("See: guide.md");
  expect(guided.migrationGuideUrl).toBe("guide.md");
});

test("an error of another copy of the package is one of ours, and other errors are not", () => {
  expect(isLimiterError(new ValidationError("field", 1, "reason"))).toBe(true);
  expect(isLimiterError(Object.assign(new Error("copied"), { code: "ZAEL_UNAVAILABLE" }))).toBe(
    true,
  );
  const others = [new Error("no code"), Object.assign(new Error("system"), { code: "ENOENT" })];
  for (const other of [...others, { code: "ZAEL_UNAVAILABLE" }, "ZAEL_ERROR", null, undefined]) {
    expect(isLimiterError(other)).toBe(false);
  }
});
