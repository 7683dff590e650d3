import { discardPlan, executePlan, preparePlan } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import type { DeployContext } from "@zae-limiter/aws/deploy/deploy-context.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import type { StackEvent } from "@zae-limiter/aws/stack/stack-events.ts";
import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import {
  StackAlreadyExistsError,
  StackOperationError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  FakeAws,
  type FakeStack,
  refusal,
  TABLE_EVENT,
} from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { describe, expect, test } from "vitest";

/** Without Lambdas, whose code a checkout may not have built. */
const PLAIN: StackOptions = { enableAggregator: false, enableProvisioner: false };

function contextOf(aws: FakeAws) {
  const steps: string[] = [];
  const events: StackEvent[] = [];
  const context: DeployContext = {
    aws,
    timer: instantTimer(),
    clock: () => 1_800_000_000_000,
    random: () => 0.5,
    onStep: (step) => steps.push(step),
    onEvent: (event) => events.push(event),
  };
  return { context, steps, events };
}

function deployed(aws: FakeAws, parameters: Record<string, string> = {}): FakeStack {
  const flags = { EnableAggregator: "false", EnableProvisioner: "false" };
  return aws.add({
    name: "demo",
    status: "CREATE_COMPLETE",
    parameters: { SchemaVersion: "0.11.0", LambdaMemorySize: "256", ...flags, ...parameters },
    tags: { ...stackTags("demo", {}), team: "search" },
  });
}

async function failure(work: Promise<unknown>): Promise<StackOperationError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StackOperationError);
  return error as StackOperationError;
}

describe("a new stack", () => {
  test("a deployment without options sends the schema version and nothing else (op 51)", async () => {
    const aws = new FakeAws();
    const { context } = contextOf(aws);
    const { plan } = await preparePlan(context, "demo", PLAIN, false);
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    expect(sent?.Parameters).toEqual([
      { ParameterKey: "SchemaVersion", ParameterValue: "0.11.0" },
      { ParameterKey: "EnableAggregator", ParameterValue: "false" },
      { ParameterKey: "EnableProvisioner", ParameterValue: "false" },
    ]);
    expect(plan.kind).toBe("create");
    expect(sent).toMatchObject({
      ChangeSetType: "CREATE",
      Capabilities: ["CAPABILITY_NAMED_IAM"],
    });
    expect(sent).not.toHaveProperty("ImportExistingResources");
  });

  test("a new stack is created, and every event is reported in order, once", async () => {
    const aws = new FakeAws();
    aws.script = {
      events: [
        { ...TABLE_EVENT, status: "CREATE_IN_PROGRESS" },
        { ...TABLE_EVENT, status: "CREATE_COMPLETE" },
      ],
      end: "CREATE_COMPLETE",
    };
    const { context, events } = contextOf(aws);
    const stack = await executePlan(context, await preparePlan(context, "demo", PLAIN, false));
    expect(stack.status).toBe("CREATE_COMPLETE");
    expect(events.map(({ resource, status }) => `${resource} ${status}`)).toEqual([
      "demo CREATE_IN_PROGRESS",
      "LimiterTable CREATE_IN_PROGRESS",
      "LimiterTable CREATE_COMPLETE",
      "demo CREATE_COMPLETE",
    ]);
  });

  test("a new stack that cannot be created is reported with its first cause, and deleted", async () => {
    const aws = new FakeAws();
    aws.script = {
      events: [
        { ...TABLE_EVENT, status: "CREATE_IN_PROGRESS" },
        {
          resource: "AppRole",
          type: "AWS::IAM::Role",
          status: "CREATE_FAILED",
          reason: "Resource creation cancelled",
        },
        { ...TABLE_EVENT, status: "CREATE_FAILED", reason: "demo already exists" },
        { ...TABLE_EVENT, status: "DELETE_COMPLETE" },
      ],
      end: "ROLLBACK_COMPLETE",
    };
    const { context } = contextOf(aws);
    const prepared = await preparePlan(context, "demo", PLAIN, false);
    const error = await failure(executePlan(context, prepared));
    expect(error.message).toBe(
      'Stack "demo": it could not be created: LimiterTable (AWS::DynamoDB::Table): demo already exists',
    );
    expect(error.events).toEqual([
      { resource: "AppRole", status: "CREATE_FAILED", reason: "Resource creation cancelled" },
      { resource: "LimiterTable", status: "CREATE_FAILED", reason: "demo already exists" },
    ]);
    expect(aws.stacks.map(({ status }) => status)).toEqual(["DELETE_COMPLETE"]);
  });

  test("a new stack that cannot be taken away either says both", async () => {
    const aws = new FakeAws();
    const failed = { ...TABLE_EVENT, status: "CREATE_FAILED", reason: "no" };
    aws.script = { events: [failed], end: "ROLLBACK_FAILED" };
    aws.deletion = {
      events: [{ ...TABLE_EVENT, status: "DELETE_FAILED", reason: "protected" }],
      end: "DELETE_FAILED",
    };
    const { context } = contextOf(aws);
    const prepared = await preparePlan(context, "demo", PLAIN, false);
    const { message } = await failure(executePlan(context, prepared));
    expect(message).toMatch(
      /created: LimiterTable .*: no; and .* could not be removed: .*protected/,
    );
  });

  test("a new stack leaves nothing when it is declined, or cannot be begun", async () => {
    const aws = new FakeAws();
    const { context } = contextOf(aws);
    await discardPlan(context, await preparePlan(context, "demo", PLAIN, false));
    expect(aws.stacks.map(({ status }) => status)).toEqual(["DELETE_COMPLETE"]);

    aws.answers["cloudformation:ExecuteChangeSet"] = () => {
      throw refusal("InsufficientCapabilities", "no");
    };
    const prepared = await preparePlan(context, "demo", PLAIN, false);
    await expect(executePlan(context, prepared)).rejects.toThrow(/InsufficientCapabilities|no/);
    expect(aws.stacks.every(({ status }) => status === "DELETE_COMPLETE")).toBe(true);
  });

  test("a new stack leaves nothing when the change set is refused", async () => {
    const aws = new FakeAws();
    aws.answers["cloudformation:DescribeChangeSet"] = () => ({
      Status: "FAILED",
      StatusReason: "Parameter LambdaMemorySize must be a number",
    });
    const { context } = contextOf(aws);
    const { message } = await failure(preparePlan(context, "demo", PLAIN, false));
    expect(message).toContain("Parameter LambdaMemorySize must be a number");
    expect(aws.stacks.map(({ status }) => status)).toEqual(["DELETE_COMPLETE"]);
  });

  test("deploy reports a stack that another client created first (op 54)", async () => {
    const aws = new FakeAws();
    aws.answers["cloudformation:CreateChangeSet"] = () => {
      throw refusal("ValidationError", "Stack [demo] already exists and cannot be created again");
    };
    const { context } = contextOf(aws);
    await expect(preparePlan(context, "demo", PLAIN, false)).rejects.toThrow(
      StackAlreadyExistsError,
    );
  });

  test("a failed earlier attempt does not block a deploy", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "ROLLBACK_COMPLETE" });
    const { context, steps } = contextOf(aws);
    const { plan } = await preparePlan(context, "demo", PLAIN, false);
    expect(plan.kind).toBe("create");
    expect(steps.join()).toMatch(/earlier attempt.*ROLLBACK_COMPLETE/);
    expect(aws.stacks.map(({ status }) => status)).toEqual([
      "DELETE_COMPLETE",
      "REVIEW_IN_PROGRESS",
    ]);
  });

  test("typos are refused before any request to AWS", async () => {
    const aws = new FakeAws();
    const { context } = contextOf(aws);
    const wrong: [string, StackOptions][] = [
      ["my_app", {}],
      ["demo", { lambdaTimeout: 0 }],
      ["demo", { lambdaMemmory: 1 } as StackOptions],
      ["ab", {}],
      ["a".repeat(56), {}],
    ];
    for (const [name, options] of wrong) {
      await expect(preparePlan(context, name, options, false)).rejects.toThrow(ValidationError);
    }
    expect(aws.requests).toEqual([]);
  });

  test("a stack with a long name is deployed with short suffixes for the names of its functions", async () => {
    const aws = new FakeAws();
    const { context } = contextOf(aws);
    const suffixes = async (name: string) => {
      const { plan } = await preparePlan(context, name, PLAIN, false);
      const after = new Map(plan.settings.map((setting) => [setting.name, setting.after]));
      return [after.get("AggregatorSuffix"), after.get("ProvisionerSuffix")];
    };
    expect(await suffixes("a".repeat(45))).toEqual([undefined, undefined]);
    expect(await suffixes("a".repeat(53))).toEqual([undefined, "prov"]);
    expect(await suffixes("a".repeat(55))).toEqual(["aggr", "prov"]);
  });
});

describe("a stack that is there", () => {
  test("one option changed is one change, and everything else is as it was (W17)", async () => {
    const aws = new FakeAws();
    deployed(aws, { PermissionBoundary: "PowerUser", LambdaCodeBucket: "mine" });
    aws.changes = [
      {
        Action: "Modify",
        LogicalResourceId: "AggregatorFunction",
        ResourceType: "AWS::Lambda::Function",
        Replacement: "False",
        Details: [{ Target: { Name: "MemorySize" } }, { Target: { Name: "MemorySize" } }],
      },
    ];
    const { context } = contextOf(aws);
    const prepared = await preparePlan(context, "demo", { lambdaMemory: 512 }, false);
    expect(prepared.plan).toMatchObject({
      kind: "update",
      settings: [{ name: "LambdaMemorySize", before: "256", after: "512" }],
      tags: [],
      resources: [
        {
          action: "Modify",
          resource: "AggregatorFunction",
          type: "AWS::Lambda::Function",
          replaced: false,
          properties: ["MemorySize"],
        },
      ],
    });
    const stack = await executePlan(context, prepared);
    expect(stack.parameters).toMatchObject({
      LambdaMemorySize: "512",
      PermissionBoundary: "PowerUser",
      LambdaCodeBucket: "mine",
    });
    expect(stack.tags.team).toBe("search");
    // Nothing is left to the defaults of the template.
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    const names = ((sent?.Parameters ?? []) as { ParameterKey: string }[]).map(
      (one) => one.ParameterKey,
    );
    expect(new Set(names)).toEqual(new Set(Object.keys(stack.parameters)));
  });

  test("--reset sends what is not given back to its default", async () => {
    const aws = new FakeAws();
    deployed(aws, { LambdaMemorySize: "1024", PermissionBoundary: "PowerUser" });
    const { context } = contextOf(aws);
    const { plan } = await preparePlan(context, "demo", PLAIN, true);
    expect(plan.settings).toEqual([
      { name: "LambdaMemorySize", before: "1024", after: "256" },
      { name: "PermissionBoundary", before: "PowerUser", after: "" },
    ]);
    expect(plan.tags).toEqual([{ name: "team", before: "search", after: undefined }]);
  });

  test("nothing to change is no change", async () => {
    const aws = new FakeAws();
    deployed(aws);
    aws.changes = undefined;
    const { context } = contextOf(aws);
    const { plan } = await preparePlan(context, "demo", {}, false);
    expect(plan).toMatchObject({ kind: "nothing", settings: [], tags: [], resources: [] });
    expect(aws.writes).toEqual([
      "cloudformation:CreateChangeSet",
      "cloudformation:DeleteChangeSet",
    ]);
  });

  test("an operation under way is waited for, and then the change is made (op 53)", async () => {
    const aws = new FakeAws();
    const stack = deployed(aws);
    stack.status = "CREATE_IN_PROGRESS";
    const event = { ...TABLE_EVENT, status: "CREATE_COMPLETE" };
    aws.busy(stack, { events: [event, event], end: "CREATE_COMPLETE" });
    const { context, steps } = contextOf(aws);
    const { plan } = await preparePlan(context, "demo", { lambdaMemory: 512 }, false);
    expect(steps).toEqual(["Waiting for the operation that is under way (CREATE_IN_PROGRESS)"]);
    expect(plan.kind).toBe("update");
  });

  test("a failed update is reported with its cause and leaves the stack as it was", async () => {
    const aws = new FakeAws();
    deployed(aws);
    aws.script = {
      events: [
        {
          resource: "AggregatorFunction",
          type: "AWS::Lambda::Function",
          status: "UPDATE_FAILED",
          reason: "quota exceeded",
        },
      ],
      end: "UPDATE_ROLLBACK_COMPLETE",
    };
    const { context } = contextOf(aws);
    const prepared = await preparePlan(context, "demo", { lambdaMemory: 512 }, false);
    const { message } = await failure(executePlan(context, prepared));
    expect(message).toMatch(/as it was before: AggregatorFunction .*: quota exceeded$/);
    expect(aws.writes).not.toContain("cloudformation:DeleteStack");
  });

  test.each([
    { Action: "Remove" },
    { Action: "Modify", Replacement: "True" },
    { Action: "Modify", Replacement: "Conditional" },
  ])("a change that would lose the table is refused: %o", async (change) => {
    const aws = new FakeAws();
    deployed(aws);
    const table = { LogicalResourceId: "LimiterTable", ResourceType: "AWS::DynamoDB::Table" };
    aws.changes = [{ ...table, ...change, Details: [{ Target: { Name: "KeySchema" } }] }];
    const { context } = contextOf(aws);
    const { message } = await failure(preparePlan(context, "demo", { lambdaMemory: 512 }, false));
    expect(message).toContain("would replace the table and lose what is in it (KeySchema)");
    expect(aws.writes).toEqual([
      "cloudformation:CreateChangeSet",
      "cloudformation:DeleteChangeSet",
    ]);
  });

  test("the error for a stack that is stuck says what to do", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "UPDATE_ROLLBACK_FAILED" });
    const { context } = contextOf(aws);
    const { message } = await failure(preparePlan(context, "demo", PLAIN, false));
    expect(message).toContain("aws cloudformation continue-update-rollback --stack-name demo");
  });
});
