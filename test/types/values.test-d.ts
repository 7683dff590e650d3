import type {
  Clock,
  ConfigSource,
  Entity,
  JsonValue,
  Limit,
  LimitStatus,
  OnUnavailable,
  Random,
  WindowType,
} from "@zae-limiter/limiter/index.ts";
import { describe, expectTypeOf, test } from "vitest";

describe("unions", () => {
  test("unions have exactly the members of the contract", () => {
    expectTypeOf<OnUnavailable>().toEqualTypeOf<"allow" | "block">();
    expectTypeOf<ConfigSource>().toEqualTypeOf<
      "entity" | "entity_default" | "parent" | "parent_default" | "resource" | "system"
    >();
    expectTypeOf<WindowType>().toEqualTypeOf<"hourly" | "daily" | "monthly">();
    // @ts-expect-error A typo is an error before anything runs.
    const mode: OnUnavailable = "Allow";
    expectTypeOf(mode).toExtend<string>();
  });
});

describe("JsonValue", () => {
  test("JsonValue takes what JSON can say, deep and readonly", () => {
    expectTypeOf<{ a: [1, { b: null }]; c: true }>().toExtend<JsonValue>();
    expectTypeOf<readonly string[]>().toExtend<JsonValue>();
  });

  test("JsonValue refuses what JSON cannot say", () => {
    expectTypeOf<undefined>().not.toExtend<JsonValue>();
    expectTypeOf<bigint>().not.toExtend<JsonValue>();
    expectTypeOf<Date>().not.toExtend<JsonValue>();
    expectTypeOf<{ at: Date }>().not.toExtend<JsonValue>();
    expectTypeOf<() => void>().not.toExtend<JsonValue>();
  });
});

describe("LimitStatus", () => {
  test("LimitStatus has the fields of the contract, and none can be written", () => {
    expectTypeOf<LimitStatus>().toEqualTypeOf<{
      readonly entityId: string;
      readonly resource: string;
      readonly limitName: string;
      readonly limit: Limit;
      readonly scheduled?: Limit;
      readonly kind: "rate" | "quota" | "session" | "concurrency";
      readonly available: number;
      readonly requested: number;
      readonly exceeded: boolean;
      readonly retryAfterSeconds: number;
      readonly fullAfterSeconds: number;
      readonly deficit: number;
      readonly soft?: true;
      readonly overdrawn?: true;
      readonly bypassed?: true;
      readonly estimated?: true;
      readonly resetsAtMs?: number;
      readonly periodStartMs?: number;
      readonly used?: number;
    }>();
  });
});

describe("Entity", () => {
  test("Entity is an immutable value whose metadata is JSON", () => {
    expectTypeOf<Entity["metadata"]>().toEqualTypeOf<Readonly<Record<string, JsonValue>>>();
    expectTypeOf<Entity["parentId"]>().toEqualTypeOf<string | undefined>();
    const touch = (entity: Entity) => {
      // @ts-expect-error An entity never changes.
      entity.cascade = true;
      // @ts-expect-error Neither does its metadata.
      entity.metadata.owner = "other";
    };
    expectTypeOf(touch).returns.toBeVoid();
  });
});

test("time and randomness are plain functions, so that a test can give its own", () => {
  expectTypeOf<() => number>().toExtend<Clock>();
  expectTypeOf<typeof Math.random>().toExtend<Random>();
});
