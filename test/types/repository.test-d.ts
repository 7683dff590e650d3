import {
  type AuditEvent,
  type Entity,
  type Limit,
  type LimitInput,
  type NewEntity,
  type OnUnavailable,
  type OpenOptions,
  Repository,
} from "@zae-limiter/limiter/index.ts";
import { describe, expectTypeOf, test } from "vitest";

describe("Repository", () => {
  test("Repository is opened by an address, or by the name of a table", () => {
    expectTypeOf(Repository.open).returns.resolves.toEqualTypeOf<Repository>();
    expectTypeOf(Repository.open).parameter(0).toEqualTypeOf<string | undefined>();
    expectTypeOf(Repository.connect).returns.resolves.toEqualTypeOf<Repository>();
    expectTypeOf(Repository.createTable).returns.resolves.toEqualTypeOf<Repository>();
    expectTypeOf<{ namespace: "a"; timeoutMs: 500; clock: () => number }>().toExtend<OpenOptions>();
    expectTypeOf<OpenOptions["onUnavailable"]>().toEqualTypeOf<OnUnavailable | undefined>();
    // @ts-expect-error Opened, never constructed.
    new Repository();
  });

  test("Repository can be disposed of at the end of a block", () => {
    expectTypeOf<Repository>().toExtend<AsyncDisposable>();
    expectTypeOf<Repository["close"]>().returns.resolves.toBeVoid();
  });
});

describe("repo.entities", () => {
  type Entities = Repository["entities"];
  test("repo.entities gives values, and nothing for what is not there", () => {
    expectTypeOf<Entities["create"]>().parameters.toEqualTypeOf<[fields: NewEntity]>();
    expectTypeOf<Entities["create"]>().returns.resolves.toEqualTypeOf<Entity>();
    expectTypeOf<Entities["get"]>().returns.resolves.toEqualTypeOf<Entity | undefined>();
    expectTypeOf<Entities["children"]>().returns.resolves.toEqualTypeOf<Entity[]>();
    expectTypeOf<Entities["delete"]>().returns.resolves.toBeVoid();
  });
});

describe("repo.limits", () => {
  type Limits = Repository["limits"];
  test("repo.limits takes limits or their texts, everywhere", () => {
    expectTypeOf<Limits["setSystem"]>().parameter(0).toEqualTypeOf<readonly LimitInput[]>();
    expectTypeOf<Limits["setResource"]>().parameter(1).toEqualTypeOf<readonly LimitInput[]>();
    expectTypeOf<Limits["setEntity"]>().parameter(1).toEqualTypeOf<readonly LimitInput[]>();
    expectTypeOf<string[]>().toExtend<readonly LimitInput[]>();
    expectTypeOf<Limit[]>().toExtend<readonly LimitInput[]>();
  });

  test("repo.limits gives limits of every level", () => {
    expectTypeOf<Limits["getResource"]>().returns.resolves.toExtend<readonly Limit[]>();
    expectTypeOf<Limits["getEntity"]>().returns.resolves.toExtend<readonly Limit[]>();
    expectTypeOf<Limits["listResources"]>().returns.resolves.toEqualTypeOf<string[]>();
  });
});

test("repo.audit lists events of an entity", () => {
  type Audit = Repository["audit"];
  expectTypeOf<Audit["list"]>().returns.resolves.toExtend<readonly AuditEvent[]>();
});
