/** Failures of deployments: reported once, with their reason, and without leftovers. */

import { executePlan, preparePlan } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import { type DeployContext, stoppableTimer } from "@zae-limiter/aws/deploy/deploy-context.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import { FakeAws, refusal, TABLE_EVENT } from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { describe, expect, test } from "vitest";

/** Without Lambdas, whose code a checkout may not have built. */
const PLAIN: StackOptions = { enableAggregator: false, enableProvisioner: false };
const MINUTE = 1_800_000_000_000;

function contextOf(aws: FakeAws, signal?: AbortSignal): DeployContext {
  const timer = stoppableTimer(instantTimer(), signal);
  return { aws, timer, clock: () => MINUTE, random: () => 0.5 };
}

function standing(aws: FakeAws): void {
  const parameters = { EnableAggregator: "false", EnableProvisioner: "false" };
  aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters });
}

const PROTECTED =
  "Resource cannot be deleted as it is currently protected against deletion. Disable deletion " +
  "protection first.";

const denied = () => {
  throw refusal("AccessDenied", "not allowed");
};

describe("nothing stays of a change set", () => {
  test("nothing stays of a change set that cannot be looked at", async () => {
    const aws = new FakeAws();
    aws.answers["cloudformation:DescribeChangeSet"] = denied;
    await expect(preparePlan(contextOf(aws), "demo", PLAIN, false)).rejects.toThrow("not allowed");
    expect(aws.writes).toEqual([
      "cloudformation:CreateChangeSet",
      "cloudformation:DeleteChangeSet",
      "cloudformation:DeleteStack",
    ]);
  });

  test("nothing stays of a change set whose stack cannot be followed", async () => {
    const aws = new FakeAws();
    const prepared = await preparePlan(contextOf(aws), "demo", PLAIN, false);
    aws.answers["cloudformation:DescribeStackEvents"] = denied;
    await expect(executePlan(contextOf(aws), prepared)).rejects.toThrow("not allowed");
    expect(aws.writes).not.toContain("cloudformation:ExecuteChangeSet");
    expect(aws.stacks.map(({ status }) => status)).toEqual(["DELETE_COMPLETE"]);
  });

  test("the first error counts, also when it cannot be taken back", async () => {
    const aws = new FakeAws();
    aws.answers["cloudformation:DescribeChangeSet"] = denied;
    aws.answers["cloudformation:DeleteChangeSet"] = () => {
      throw refusal("AccessDenied", "nor that");
    };
    await expect(preparePlan(contextOf(aws), "demo", PLAIN, false)).rejects.toThrow("not allowed");
  });

  test("a stop while CloudFormation computes the change set", async () => {
    const aws = new FakeAws();
    const stop = new AbortController();
    aws.answers["cloudformation:DescribeChangeSet"] = () => {
      stop.abort(new Error("Ctrl-C"));
      return { Status: "CREATE_IN_PROGRESS" };
    };
    const context = contextOf(aws, stop.signal);
    await expect(preparePlan(context, "demo", PLAIN, false)).rejects.toThrow("Ctrl-C");
    expect(aws.stacks.map(({ status }) => status)).toEqual(["DELETE_COMPLETE"]);
  });
});

test("the code of the Lambdas is looked up before there is a change set", async () => {
  const aws = new FakeAws();
  standing(aws);
  aws.answers["lambda:GetFunction"] = denied;
  const options = { enableProvisioner: false, enableAggregator: true };
  const work = preparePlan(contextOf(aws), "demo", options, false);
  // In a checkout that was never built there is no code to compare with.
  await expect(work).rejects.toThrow(/not allowed|npm run build/);
  expect(aws.writes).toEqual([]);
});

test("an update that could not be rolled back either is not called as it was before", async () => {
  const aws = new FakeAws();
  standing(aws);
  aws.script = {
    events: [{ ...TABLE_EVENT, status: "UPDATE_FAILED", reason: "no" }],
    end: "UPDATE_ROLLBACK_FAILED",
  };
  const prepared = await preparePlan(contextOf(aws), "demo", { lambdaMemory: 512 }, false);
  await expect(executePlan(contextOf(aws), prepared)).rejects.toThrow(
    'Stack "demo": it could not be updated: LimiterTable (AWS::DynamoDB::Table): no; and it is ' +
      "stuck in UPDATE_ROLLBACK_FAILED; repair it first with: aws cloudformation " +
      "continue-update-rollback --stack-name demo",
  );
});

test("a deployment that is stopped while the stack changes is neither waited for nor undone", async () => {
  const aws = new FakeAws();
  standing(aws);
  const stop = new AbortController();
  const event = { ...TABLE_EVENT, status: "UPDATE_IN_PROGRESS" };
  aws.script = { events: [event, event, event], end: "UPDATE_COMPLETE" };
  const context: DeployContext = {
    ...contextOf(aws, stop.signal),
    onEvent: () => stop.abort(new Error("Ctrl-C")),
  };
  const prepared = await preparePlan(context, "demo", { lambdaMemory: 512 }, false);
  await expect(executePlan(context, prepared)).rejects.toThrow("Ctrl-C");
  expect(aws.writes.at(-1)).toBe("cloudformation:ExecuteChangeSet");
});

describe("a name of IAM that is taken", () => {
  const role = { resource: "AggregatorRole", type: "AWS::IAM::Role", status: "CREATE_FAILED" };
  const created = async (event: typeof role & { reason: string }) => {
    const aws = new FakeAws();
    aws.script = { events: [event], end: "ROLLBACK_COMPLETE" };
    const prepared = await preparePlan(contextOf(aws), "demo", PLAIN, false);
    return executePlan(contextOf(aws), prepared);
  };

  test("a name of IAM that is taken holds in every region: the error says what to do", async () => {
    await expect(created({ ...role, reason: "demo-aggr already exists" })).rejects.toThrow(
      /demo-aggr already exists\. Names of .* all regions .*--role-name-format and --policy-name-format, or another name/,
    );
  });

  test("other failures have other reasons", async () => {
    await expect(created({ ...role, reason: "quota exceeded" })).rejects.toThrow(/exceeded$/);
    const table = { ...role, ...TABLE_EVENT, reason: "demo already exists" };
    await expect(created(table)).rejects.toThrow(/already exists$/);
  });
});

describe("a protected table of a stack that could not be created", () => {
  const advice =
    /protection first\. Switch that off with: aws dynamodb update-table --table-name demo --no-deletion-protection-enabled, and run this again$/;

  test("a protected table of a failed stack says how it can be removed, and is removed then", async () => {
    const aws = new FakeAws();
    const failed = { ...TABLE_EVENT, status: "DELETE_FAILED", reason: PROTECTED };
    aws.script = {
      events: [{ ...TABLE_EVENT, status: "CREATE_FAILED", reason: "no" }, failed],
      end: "ROLLBACK_FAILED",
    };
    aws.deletion = { events: [failed], end: "DELETE_FAILED" };
    const prepared = await preparePlan(contextOf(aws), "demo", PLAIN, false);
    await expect(executePlan(contextOf(aws), prepared)).rejects.toThrow(advice);
    // As long as nothing is done about it, the next one says the same.
    await expect(preparePlan(contextOf(aws), "demo", PLAIN, false)).rejects.toThrow(advice);
    aws.deletion = { events: [], end: "DELETE_COMPLETE" };
    const { plan } = await preparePlan(contextOf(aws), "demo", PLAIN, false);
    expect(plan.kind).toBe("create");
  });

  test("a stack that has stood is not deleted by deploying", async () => {
    const aws = new FakeAws();
    standing(aws);
    const [stack] = aws.stacks;
    if (stack !== undefined) stack.status = "DELETE_FAILED";
    const work = preparePlan(contextOf(aws), "demo", PLAIN, false);
    await expect(work).rejects.toThrow(/stuck in DELETE_FAILED/);
    expect(aws.writes).toEqual([]);
  });

  test("a stack whose first events are forgotten is not removed", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "DELETE_FAILED" });
    const work = preparePlan(contextOf(aws), "demo", PLAIN, false);
    await expect(work).rejects.toThrow(/stuck in DELETE_FAILED/);
    expect(aws.writes).toEqual([]);
  });
});
