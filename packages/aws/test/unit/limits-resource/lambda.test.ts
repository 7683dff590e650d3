/** The custom resource: what it does with limits, and what it says to CloudFormation. */

import {
  createLimitsHandler,
  type LimitsHandler,
  limitsHandlerFrom,
} from "@zae-limiter/aws/limits-resource/lambda.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CloudFormation, LOCAL_PLACE, STACK_ID } from "./requests.ts";

const TABLE = "my-app";
const GPT4 = { "gpt-4": { Limits: { rpm: { Capacity: "500" } } } };
const SYSTEM = { OnUnavailable: "block", Limits: { rpm: { Capacity: "1000" } } };

/** Short pauses are over at once, long ones when they are broken off. */
const timer: Timer = {
  nowMs: () => 0,
  sleep: (ms, signal) =>
    ms < 9000
      ? Promise.resolve()
      : new Promise((done) => signal?.addEventListener("abort", () => done())),
};

/** Ends a pause that is shorter than an attempt to answer at once. */
const shortOnly: Timer["sleep"] = (ms, signal) => timer.sleep(ms <= 2000 ? ms : 9000, signal);

let repo: Repository;
let cloudFormation: CloudFormation;
let lines: string[];

beforeEach(async () => {
  repo = await Repository.open("memory:", { namespace: "tenant-a" });
  cloudFormation = await CloudFormation.start();
  lines = [];
});
afterEach(async () => {
  await cloudFormation.stop();
  await repo.close();
});

function handlerOver(changes: Partial<StoreAsItIs> = {}, options: object = {}): LimitsHandler {
  const store: StoreAsItIs = {
    namespaces: repo.namespaces,
    enter: (name) => repo.namespace(name),
    close: async () => undefined,
    ...changes,
  };
  const log = (line: string) => void lines.push(line);
  return createLimitsHandler({
    table: TABLE,
    open: async () => store,
    timer,
    place: LOCAL_PLACE,
    log,
    ...options,
  });
}

const properties = (more: object = {}) => ({
  ServiceToken: "arn:aws:lambda:us-east-1:123456789012:function:my-app-limits-provisioner",
  TableName: TABLE,
  Namespace: "tenant-a",
  ...more,
});

describe("Custom::ZaeLimiterLimits", () => {
  test("Custom::ZaeLimiterLimits keeps quotas, sessions, windows and slots", async () => {
    const Schedule = [{ When: "mon-fri 9-18", Tz: "Europe/Berlin", Scale: "0.5" }];
    const Limits = {
      req: { Quota: { Amount: "10000", Every: "month", TimeZone: "Europe/Berlin" } },
      rpm: { Capacity: "500", Schedule },
      ses: { Capacity: "9", SessionSeconds: "18000" },
      slots: { Capacity: "20", Concurrent: "true" },
    };
    const created = await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: properties({ Resources: { api: { Limits } } }),
    });
    expect(created).toMatchObject({ Status: "SUCCESS", Data: { Created: 1 } });
    const limits = await repo.limits.getResource("api");
    expect(limits.map(String)).toEqual([
      "req:10000/month Europe/Berlin",
      "rpm:500/min",
      "ses:9/session:5hour",
      "slots:20 concurrent",
    ]);
    expect(limits[1]?.toJSON().schedule).toEqual([
      { cron: "* 9-17 * * 1-5", tz: "Europe/Berlin", scale: 0.5 },
    ]);
  });

  test("Custom::ZaeLimiterLimits creates, updates and deletes limits (op 49)", async () => {
    const handler = handlerOver();
    const created = await cloudFormation.send(handler, {
      type: "Create",
      properties: properties({ Resources: GPT4 }),
    });
    expect(created).toEqual({
      Status: "SUCCESS",
      PhysicalResourceId: `my-app/${repo.namespaceId}/TenantLimits@${STACK_ID.slice(-36)}`,
      StackId: STACK_ID,
      RequestId: "request-1",
      LogicalResourceId: "TenantLimits",
      Data: { NamespaceId: repo.namespaceId, Created: 1, Updated: 0, Deleted: 0 },
    });
    const physicalId = created.PhysicalResourceId;
    const larger = { "gpt-4": { Limits: { rpm: { Capacity: "600" } } } };
    const updated = await cloudFormation.send(handler, {
      type: "Update",
      properties: properties({ Resources: larger, System: SYSTEM }),
      physicalId,
    });
    expect(updated).toMatchObject({
      Status: "SUCCESS",
      PhysicalResourceId: physicalId,
      Data: { Created: 1, Updated: 1, Deleted: 0 },
    });
    expect((await repo.limits.getResource("gpt-4")).map(String)).toEqual(["rpm:600/min"]);
    expect((await repo.limits.getSystem()).onUnavailable).toBe("block");
    const deleted = await cloudFormation.send(handler, {
      type: "Delete",
      properties: properties({ Resources: larger, System: SYSTEM }),
      physicalId,
    });
    expect(deleted).toMatchObject({ Status: "SUCCESS", Data: { Deleted: 2 } });
    expect(await repo.limits.listResources()).toEqual([]);
    expect(await repo.limits.getSystem()).toEqual({ limits: [] });
  });

  test("what it writes is listed, audited and counted like any other limit (W22)", async () => {
    const Entities = { "key-1": { Resources: { "gpt-4": { Limits: { rpm: { Capacity: 9 } } } } } };
    await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: properties({ Resources: GPT4, Entities }),
    });
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
    expect((await repo.limits.listEntities("gpt-4")).entityIds).toEqual(["key-1"]);
    const [event] = await repo.audit.list("key-1");
    expect(event).toMatchObject({ action: "limits_set", principal: STACK_ID });
  });

  test("the same request again changes nothing and gets the same answer", async () => {
    const handler = handlerOver();
    const request = { type: "Create", properties: properties({ Resources: GPT4 }) } as const;
    const first = await cloudFormation.send(handler, request);
    const again = await cloudFormation.send(handler, request);
    expect(again.PhysicalResourceId).toBe(first.PhysicalResourceId);
    expect(again).toMatchObject({ Status: "SUCCESS", Data: { Created: 0, Updated: 0 } });
    const gone = { type: "Delete", physicalId: first.PhysicalResourceId, properties: properties() };
    await cloudFormation.send(handler, { ...gone, type: "Delete" });
    const twice = await cloudFormation.send(handler, { ...gone, type: "Delete" });
    expect(twice.Status).toBe("SUCCESS");
  });

  test('the namespace is "default" by default, and may be given by its id', async () => {
    const byId = await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: { TableName: TABLE, NamespaceId: repo.namespaceId, Resources: GPT4 },
    });
    expect(byId.Data?.NamespaceId).toBe(repo.namespaceId);
    const byDefault = await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: { Resources: GPT4 },
    });
    const fallback = await repo.namespaces.get("default");
    expect(byDefault.Data?.NamespaceId).toBe(fallback?.namespaceId);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["an unknown namespace", { Namespace: "tenant-x" }, 'no namespace "tenant-x". Register it'],
    ["an unknown namespace id", { NamespaceId: "xyz" }, 'with the id "xyz"'],
    ["another table", { TableName: "other" }, 'served for the table "my-app"'],
    ["a typo", { Resource: GPT4 }, "Resource"],
    ["a limit that is none", { System: { Limits: { rpm: { Capacity: "many" } } } }, "many"],
  ])("%s fails with a reason, and nothing is written", async (_, change, reason) => {
    const reply = await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: properties({ Resources: GPT4, ...change }),
    });
    expect(reply.Status).toBe("FAILED");
    expect(reply.Reason).toContain(reason);
    expect(await repo.limits.listResources()).toEqual([]);
    // CloudFormation then deletes what was not made: that must not fail, nor delete anything else.
    await repo.limits.setResource("gpt-4", ["rpm:1"]);
    const deleted = await cloudFormation.send(handlerOver(), {
      type: "Delete",
      properties: properties({ Resources: GPT4, ...change }),
      physicalId: reply.PhysicalResourceId,
    });
    expect(deleted.Status).toBe("SUCCESS");
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  });

  test("a delete succeeds when the namespace or the table is gone", async () => {
    const handler = handlerOver();
    const { PhysicalResourceId: physicalId } = await cloudFormation.send(handler, {
      type: "Create",
      properties: properties({ Resources: GPT4 }),
    });
    const request = { type: "Delete", properties: properties(), physicalId } as const;
    const open = async () => Promise.reject(new InfrastructureNotFoundError(TABLE));
    const withoutTable = await cloudFormation.send(handlerOver({}, { open }), request);
    expect(withoutTable).toMatchObject({ Status: "SUCCESS", PhysicalResourceId: physicalId });
    await repo.namespaces.delete("tenant-a");
    expect((await cloudFormation.send(handler, request)).Status).toBe("SUCCESS");
  });

  test("a resource that gets another logical id keeps its limits", async () => {
    const handler = handlerOver();
    const old = await cloudFormation.send(handler, {
      type: "Create",
      properties: properties({ Resources: GPT4 }),
      logicalId: "Before",
    });
    await cloudFormation.send(handler, {
      type: "Create",
      properties: properties({ Resources: GPT4 }),
      logicalId: "After",
    });
    // CloudFormation deletes the one that is not in the template any more last.
    const deleted = await cloudFormation.send(handler, {
      type: "Delete",
      properties: properties({ Resources: GPT4 }),
      physicalId: old.PhysicalResourceId,
      logicalId: "Before",
    });
    expect(deleted.Status).toBe("SUCCESS");
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
  });

  test("another namespace is another resource, and the old one is cleared", async () => {
    await repo.namespaces.register("tenant-b");
    const handler = handlerOver();
    const before = await cloudFormation.send(handler, {
      type: "Create",
      properties: properties({ Resources: GPT4 }),
    });
    const after = await cloudFormation.send(handler, {
      type: "Update",
      properties: properties({ Resources: GPT4, Namespace: "tenant-b" }),
      physicalId: before.PhysicalResourceId,
    });
    expect(after.PhysicalResourceId).not.toBe(before.PhysicalResourceId);
    await cloudFormation.send(handler, {
      type: "Delete",
      properties: properties({ Resources: GPT4 }),
      physicalId: before.PhysicalResourceId,
    });
    expect(await repo.limits.listResources()).toEqual([]);
    const other = await repo.namespace("tenant-b");
    expect(await other.limits.listResources()).toEqual(["gpt-4"]);
  });

  test("a resource of the Python library keeps its name, and can be deleted", async () => {
    const physicalId = `my-app/${repo.namespaceId}/limits-provisioner`;
    const handler = handlerOver();
    const request = { properties: properties({ Resources: GPT4 }), physicalId };
    const updated = await cloudFormation.send(handler, { ...request, type: "Update" });
    expect(updated).toMatchObject({ Status: "SUCCESS", PhysicalResourceId: physicalId });
    const deleted = await cloudFormation.send(handler, { ...request, type: "Delete" });
    expect(deleted.Data).toMatchObject({ Deleted: 1 });
  });

  test("changes that fail make it fail, with what was done; the name stays (W22)", async () => {
    const store = repo.namespaces;
    const refuse = async (): Promise<never> => {
      throw new RateLimiterUnavailable("DynamoDB could not be reached", { reason: "network" });
    };
    const broken = await repo.namespace("tenant-a");
    Object.assign(broken.limits, { setResource: refuse });
    const handler = handlerOver({ namespaces: store, enter: async () => broken });
    const physicalId = `my-app/${repo.namespaceId}/TenantLimits@${STACK_ID.slice(-36)}`;
    const reply = await cloudFormation.send(handler, {
      type: "Update",
      properties: properties({ Resources: GPT4, System: SYSTEM }),
      physicalId,
    });
    expect(reply).toMatchObject({ Status: "FAILED", PhysicalResourceId: physicalId });
    expect(reply.Reason).toBe(
      "1 of 2 changes were made. resource gpt-4: DynamoDB could not be reached",
    );
  });

  test("an answer comes before the time of the Lambda is over", async () => {
    const never = new Promise<Repository>(() => undefined);
    const handler = handlerOver({ enter: () => never }, { timer: { ...timer, sleep: shortOnly } });
    const context = { getRemainingTimeInMillis: () => 12_000 };
    const request = { type: "Create", properties: properties({ Resources: GPT4 }) } as const;
    const reply = await cloudFormation.send(handler, request, context);
    expect(reply.Status).toBe("FAILED");
    expect(reply.Reason).toContain("the time of the Lambda was over");
  });

  test("no change is begun when there is not enough time for it", async () => {
    const handler = handlerOver();
    const reply = await cloudFormation.send(
      handler,
      { type: "Create", properties: properties({ Resources: GPT4 }) },
      { getRemainingTimeInMillis: () => 19_500 },
    );
    expect(reply.Status).toBe("FAILED");
    expect(reply.Reason).toContain("were not begun in time");
  });
});

describe("the answer", () => {
  const request = () => ({ type: "Create", properties: properties({ Resources: GPT4 }) }) as const;

  test("the answer is put without a type, as the address is signed for", async () => {
    await cloudFormation.send(handlerOver(), request());
    expect(cloudFormation.requests).toEqual([
      { method: "PUT", type: undefined, bytes: expect.any(Number) as number },
    ]);
  });

  test("the answer is tried again while that may help", async () => {
    cloudFormation.statuses = [503, 500, 429];
    const reply = await cloudFormation.send(handlerOver(), request());
    expect(reply.Status).toBe("SUCCESS");
    expect(cloudFormation.requests).toHaveLength(4);
  });

  test("the answer that cannot be given lets Lambda call again; the address stays secret", async () => {
    const handler = handlerOver();
    cloudFormation.statuses = [403];
    const refused = handler(cloudFormation.event(request()));
    await expect(refused).rejects.toThrow("CloudFormation could not be answered: it answered 403");
    expect(cloudFormation.requests).toHaveLength(1);
    // The second call finds everything done.
    const again = await cloudFormation.send(handler, request());
    expect(again).toMatchObject({ Status: "SUCCESS", Data: { Created: 0 } });
    const event = { ...cloudFormation.event(request()), ResponseURL: "http://127.0.0.1:1/secret" };
    await expect(handler(event)).rejects.toThrow(
      /^CloudFormation could not be answered: TypeError$/,
    );
    expect(lines.join("")).not.toContain("secret");
  });

  test("the answer is never longer than CloudFormation takes", async () => {
    const names = Array.from({ length: 400 }, (_, index) => `résumé-${index}-"quoted"`);
    const Resources = Object.fromEntries(names.map((name) => [name, { Limits: {} }]));
    const reply = await cloudFormation.send(handlerOver(), {
      type: "Create",
      properties: properties({ Resources }),
    });
    expect(reply.Status).toBe("FAILED");
    expect(reply.Reason).toMatch(/ …$/);
    expect(cloudFormation.requests[0]?.bytes).toBeLessThanOrEqual(4096);
    expect(cloudFormation.requests[0]?.bytes).toBeGreaterThan(3000);
  });

  test("the answer is logged as one line that names the request", async () => {
    await cloudFormation.send(handlerOver(), request());
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      level: "info",
      request_type: "Create",
      stack_id: STACK_ID,
      Created: 1,
    });
  });
});

describe("the handler", () => {
  test.each([
    ["nothing", undefined],
    ["a direct call", { action: "plan" }],
    ["a request without an address", { RequestType: "Create" }],
  ])("the handler refuses %s, which has no address to answer to", async (_, event) => {
    await expect(handlerOver()(event)).rejects.toMatchObject({ code: "ZAEL_VALIDATION" });
  });

  test("the handler needs the name of the table", () => {
    expect(() => limitsHandlerFrom({}, () => undefined)).toThrow("expected the name of the table");
    expect(limitsHandlerFrom({ TABLE_NAME: TABLE }, () => undefined)).toBeTypeOf("function");
  });
});
