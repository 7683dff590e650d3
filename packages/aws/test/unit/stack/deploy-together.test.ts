/** Clients that deploy the same stack at once, and a CloudFormation that reports it late. */

import { discardPlan, executePlan, preparePlan } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import { deployOver, whileOvertaken } from "@zae-limiter/aws/deploy/deploy.ts";
import type { DeployContext } from "@zae-limiter/aws/deploy/deploy-context.ts";
import { Overtaken } from "@zae-limiter/aws/deploy/overtaken.ts";
import { ensureTags } from "@zae-limiter/aws/deploy/upgrade.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import { removeStack } from "@zae-limiter/aws/stack/remove-stack.ts";
import { findStack, type Stack } from "@zae-limiter/aws/stack/stack.ts";
import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
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

function contextOf(aws: FakeAws, seed = 1, steps: string[] = []): DeployContext {
  return {
    aws,
    timer: instantTimer(),
    clock: () => 1_800_000_000_000,
    random: () => seed / 100,
    onStep: (step) => steps.push(step),
  };
}

function prepare(aws: FakeAws, seed: number) {
  return preparePlan(contextOf(aws, seed), "demo", PLAIN, false);
}

function standing(aws: FakeAws): FakeStack {
  const parameters = { EnableAggregator: "false", EnableProvisioner: "false" };
  const tags = { ...stackTags("demo", {}) };
  return aws.add({ name: "demo", status: "UPDATE_COMPLETE", parameters, tags });
}

const statuses = (aws: FakeAws) => aws.stacks.map(({ status }) => status);

describe("two first deployments", () => {
  test("a client that declines removes only its own change set from a shared stack", async () => {
    const aws = new FakeAws();
    const first = await prepare(aws, 1);
    const second = await prepare(aws, 2);
    expect(first.changeSet.stackId).toBe(second.changeSet.stackId);
    await discardPlan(contextOf(aws), first);
    expect([statuses(aws), aws.changeSets]).toEqual([
      ["REVIEW_IN_PROGRESS"],
      [second.changeSet.id],
    ]);
    await discardPlan(contextOf(aws), second);
    expect(statuses(aws)).toEqual(["DELETE_COMPLETE"]);
  });

  test.each([0, 3])(
    "declining late leaves the stack of the other, seen %i looks late",
    async (looks) => {
      const aws = new FakeAws();
      const first = await prepare(aws, 1);
      const second = await prepare(aws, 2);
      await executePlan(contextOf(aws), second);
      aws.stale = { looks, as: "before" };
      await discardPlan(contextOf(aws), first);
      expect(statuses(aws)).toEqual(["CREATE_COMPLETE"]);
      expect(aws.writes).not.toContain("cloudformation:DeleteStack");
    },
  );

  test.each([0, 3])(
    "carrying out what is void leaves it as well, seen %i looks late",
    async (looks) => {
      const aws = new FakeAws();
      const first = await prepare(aws, 1);
      const second = await prepare(aws, 2);
      await executePlan(contextOf(aws), second);
      aws.stale = { looks, as: "before" };
      await expect(executePlan(contextOf(aws), first)).rejects.toThrow(Overtaken);
      expect(statuses(aws)).toEqual(["CREATE_COMPLETE"]);
      expect(aws.writes).not.toContain("cloudformation:DeleteStack");
    },
  );

  test("a client that loses its change set while CloudFormation thinks is overtaken", async () => {
    const aws = new FakeAws();
    let looks = 0;
    aws.answers["cloudformation:DescribeChangeSet"] = () => {
      looks += 1;
      if (looks === 1) return { Status: "CREATE_IN_PROGRESS" };
      throw refusal("ChangeSetNotFound", "ChangeSet [x] does not exist");
    };
    await expect(prepare(aws, 1)).rejects.toThrow(Overtaken);
    aws.answers["cloudformation:DescribeChangeSet"] = () => ({ Status: "DELETE_COMPLETE" });
    await expect(prepare(aws, 2)).rejects.toThrow(Overtaken);
    expect(aws.writes).not.toContain("cloudformation:DeleteStack");
  });
});

describe("a client that was overtaken", () => {
  test("a client that was overtaken continues from the deployed state: all of many succeed", async () => {
    const aws = new FakeAws();
    const event = { ...TABLE_EVENT, status: "CREATE_IN_PROGRESS" };
    aws.script = { events: [event, event, event], end: "CREATE_COMPLETE" };
    const replicas = Array.from({ length: 5 }, async (_, at) => {
      const steps: string[] = [];
      const context = contextOf(aws, at, steps);
      const kind = await whileOvertaken(context, async () => {
        const prepared = await preparePlan(context, "demo", PLAIN, false);
        if (prepared.plan.kind === "create") await executePlan(context, prepared);
        else await discardPlan(context, prepared);
        return prepared.plan.kind;
      });
      return { kind, steps };
    });
    const done = await Promise.all(replicas);
    expect(done.map(({ kind }) => kind).sort()).toEqual(["create", ...Array(4).fill("update")]);
    const others = done.filter(({ kind }) => kind !== "create");
    for (const { steps } of others) expect(steps.join()).toMatch(/^Another client was faster/);
    expect(statuses(aws)).toEqual(["CREATE_COMPLETE"]);
  });

  test("a client that was overtaken is asked about the new plan", async () => {
    const aws = new FakeAws();
    const steps: string[] = [];
    const kinds: string[] = [];
    const result = await deployOver(contextOf(aws, 1, steps), {
      stackName: "demo",
      options: PLAIN,
      connection: {},
      confirm: async ({ kind }) => {
        kinds.push(kind);
        if (kind !== "create") return false;
        await executePlan(contextOf(aws), await prepare(aws, 2));
        return true;
      },
    });
    expect(kinds).toEqual(["create", "update"]);
    expect(result.outcome).toBe("declined");
    expect(steps).toEqual([
      "Creating the stack",
      "Another client was faster: continuing from its change",
    ]);
    expect(statuses(aws)).toEqual(["CREATE_COMPLETE"]);
  });

  test("a client is overtaken also while another one updates, and by a name that is taken", async () => {
    const aws = new FakeAws();
    standing(aws);
    const first = await prepare(aws, 1);
    await executePlan(contextOf(aws), await prepare(aws, 2));
    await expect(executePlan(contextOf(aws), first)).rejects.toThrow(Overtaken);
    const busy = "Stack:arn is in UPDATE_IN_PROGRESS state and can not be updated.";
    aws.answers["cloudformation:CreateChangeSet"] = () => {
      throw refusal("ValidationError", busy);
    };
    await expect(prepare(aws, 3)).rejects.toThrow(Overtaken);

    const empty = new FakeAws();
    let times = 0;
    empty.answers["cloudformation:CreateChangeSet"] = () => {
      times += 1;
      throw refusal("AlreadyExistsException", "Stack [demo] already exists");
    };
    const request = { stackName: "demo", options: PLAIN, connection: {} };
    await expect(deployOver(contextOf(empty), request)).rejects.toThrow(/already exists/);
    expect(times).toBe(11);
  });

  test.each([
    "ChangeSetNotFound",
    "ChangeSetNotFoundException",
    "InvalidChangeSetStatus",
    "InvalidChangeSetStatusException",
  ])("CloudFormation may say it as %s", async (code) => {
    const aws = new FakeAws();
    const prepared = await prepare(aws, 1);
    aws.answers["cloudformation:ExecuteChangeSet"] = () => {
      throw refusal(code, "no");
    };
    await expect(executePlan(contextOf(aws), prepared)).rejects.toThrow(Overtaken);
    expect(aws.writes).not.toContain("cloudformation:DeleteStack");
  });

  test("two at the same moment have change sets of different names", async () => {
    const aws = new FakeAws();
    const names = [await prepare(aws, 1), await prepare(aws, 2)].map(({ wanted }) => wanted.name);
    expect(new Set(names).size).toBe(2);
  });
});

describe("CloudFormation reports it late", () => {
  const STALE = [
    { looks: 4, as: "before" },
    { looks: 4, as: "missing" },
  ] as const;

  test.each(STALE)(
    "a creation that CloudFormation reports late is followed to its end: $as",
    async (stale) => {
      const aws = new FakeAws();
      const prepared = await prepare(aws, 1);
      aws.stale = { ...stale };
      const stack = await executePlan(contextOf(aws), prepared);
      expect(stack.status).toBe("CREATE_COMPLETE");
      expect(aws.writes).not.toContain("cloudformation:DeleteStack");
    },
  );

  test.each(STALE)(
    "a failed update that CloudFormation reports late is found: $as",
    async (stale) => {
      const aws = new FakeAws();
      standing(aws);
      aws.script = {
        events: [{ ...TABLE_EVENT, status: "UPDATE_FAILED", reason: "no" }],
        end: "UPDATE_ROLLBACK_COMPLETE",
      };
      const prepared = await prepare(aws, 1);
      aws.stale = { ...stale };
      await expect(executePlan(contextOf(aws), prepared)).rejects.toThrow(
        /as it was before: .*no$/,
      );
    },
  );

  test("a failed deletion that CloudFormation reports late is found", async () => {
    const aws = new FakeAws();
    const { id } = standing(aws);
    aws.deletion = {
      events: [{ ...TABLE_EVENT, status: "DELETE_FAILED", reason: "it is in use" }],
      end: "DELETE_FAILED",
    };
    aws.stale = { looks: 4, as: "before" };
    await expect(removeStack(contextOf(aws), id, "demo")).rejects.toThrow(/it is in use/);
  });

  test("tags that could not be set are found when CloudFormation reports them late", async () => {
    const aws = new FakeAws();
    standing(aws).tags = {};
    const stack = (await findStack(aws, "demo")) as Stack;
    aws.script = {
      events: [{ ...TABLE_EVENT, status: "UPDATE_FAILED", reason: "not allowed to tag" }],
      end: "UPDATE_ROLLBACK_COMPLETE",
    };
    aws.stale = { looks: 4, as: "before" };
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(/not allowed to tag/);
  });

  test("gone is gone: a deletion has nothing more to wait for", async () => {
    const aws = new FakeAws();
    const { id } = standing(aws);
    aws.isSilent = true;
    const timer = instantTimer();
    await removeStack({ aws, timer }, id, "demo");
    expect(timer.nowMs()).toBeLessThan(5000);
  });

  test("the status of an emulator without events is believed after a minute", async () => {
    const aws = new FakeAws();
    aws.isSilent = true;
    const timer = instantTimer();
    const context = { ...contextOf(aws), timer };
    const stack = await executePlan(context, await prepare(aws, 1));
    expect(stack.status).toBe("CREATE_COMPLETE");
    expect(timer.nowMs()).toBeGreaterThanOrEqual(60_000);
    expect(timer.nowMs()).toBeLessThan(75_000);
  });

  test("an empty stack that stays empty is reported, and not deleted: it may begin yet", async () => {
    const aws = new FakeAws();
    const prepared = await prepare(aws, 1);
    aws.answers["cloudformation:ExecuteChangeSet"] = () => ({});
    const work = executePlan(contextOf(aws), prepared);
    await expect(work).rejects.toThrow(/has not begun after a minute/);
    await expect(work).rejects.toThrow(StackOperationError);
    expect(aws.writes.at(-1)).toBe("cloudformation:ExecuteChangeSet");
  });

  test("the end of a stack within the stack is not its own", async () => {
    const aws = new FakeAws();
    standing(aws);
    const type = "AWS::CloudFormation::Stack";
    const nested = { resource: "Nested", type, physicalId: "arn:nested" };
    aws.script = {
      events: [
        { ...nested, status: "UPDATE_COMPLETE" },
        { ...TABLE_EVENT, status: "UPDATE_FAILED", reason: "no" },
      ],
      end: "UPDATE_ROLLBACK_COMPLETE",
    };
    const context: DeployContext = {
      ...contextOf(aws),
      // From here on it is described as it was, which is also how the inner one ended.
      onEvent: ({ resource }) => {
        if (resource === "Nested") aws.stale = { looks: 3, as: "before" };
      },
    };
    const prepared = await preparePlan(context, "demo", PLAIN, false);
    await expect(executePlan(context, prepared)).rejects.toThrow(/as it was before: .*no$/);
  });
});
