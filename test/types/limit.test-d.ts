import {
  Limit,
  type LimitInput,
  type LimitJson,
  type LimitKind,
  type LimitSpec,
  type PeriodRule,
  type RateOptions,
  type RateSchedule,
} from "@zae-limiter/limiter/index.ts";
import { describe, expectTypeOf, test } from "vitest";

describe("Limit", () => {
  const limit = Limit.parse("rpm:100");

  test("Limit is an immutable value", () => {
    expectTypeOf<Pick<Limit, keyof LimitSpec>>().toEqualTypeOf<{
      readonly name: string;
      readonly capacity: number;
      readonly refillAmount: number;
      readonly refillPeriodSeconds: number;
      readonly soft: boolean;
      readonly rule: PeriodRule | undefined;
      readonly kind: LimitKind;
      readonly alerts: readonly number[];
      readonly schedule: RateSchedule | undefined;
    }>();
    // @ts-expect-error A limit never changes.
    limit.capacity = 5;
    // @ts-expect-error Neither do its numbers in the units of the arithmetic.
    limit.rate.capacityMilli = 5;
    // @ts-expect-error Only the factories make one: they check.
    new Limit({ name: "rpm", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 });
  });

  test("Limit is made from a rate with an optional burst", () => {
    for (const factory of [Limit.perSecond, Limit.perMinute, Limit.perHour, Limit.perDay]) {
      expectTypeOf(factory).parameters.toEqualTypeOf<
        [name: string, rate: number, options?: RateOptions | undefined]
      >();
      expectTypeOf(factory).returns.toEqualTypeOf<Limit>();
    }
    // @ts-expect-error The burst is named.
    Limit.perMinute("rpm", 100, 150);
    // @ts-expect-error A number, not a text.
    Limit.perMinute("rpm", "100");
    expectTypeOf(Limit.custom).parameter(0).toEqualTypeOf<LimitSpec>();
    expectTypeOf(Limit.parse).parameters.toEqualTypeOf<[text: string]>();
  });

  test("Limit is given as itself or as its text", () => {
    expectTypeOf<LimitInput>().toEqualTypeOf<Limit | string>();
    expectTypeOf<"tpm:10000/min:15000">().toExtend<LimitInput>();
    expectTypeOf<LimitSpec>().not.toExtend<LimitInput>();
    expectTypeOf<number>().not.toExtend<LimitInput>();
  });

  test("Limit has a JSON form with the names of the wire", () => {
    expectTypeOf(limit.toJSON()).toEqualTypeOf<LimitJson>();
    expectTypeOf<keyof LimitJson>().toEqualTypeOf<
      | "name"
      | "capacity"
      | "refill_amount"
      | "refill_period_seconds"
      | "soft"
      | "quota"
      | "session_seconds"
      | "concurrent"
      | "alerts"
      | "schedule"
    >();
    expectTypeOf(limit.toString()).toBeString();
    expectTypeOf(limit.equals).parameters.toEqualTypeOf<[other: Limit]>();
  });
});
