/** Ctrl-C, and answers that are none: what the commands say and leave behind. */

import { getEventListeners } from "node:events";
import { connectAws } from "@zae-limiter/aws/client/aws.ts";
import type { DeployPlan } from "@zae-limiter/aws/deploy/plan.ts";
import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import { planText } from "@zae-limiter/cli/commands/stack/deploy-text.ts";
import {
  AwsServer,
  changeSet,
  describeStacks,
  failure,
  noStack,
} from "@zae-limiter/test-support/aws/aws-server.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const DESCRIBE = "cloudformation:DescribeStacks";
const PLAIN = ["--no-aggregator", "--no-provisioner", "--yes"];

let aws: AwsServer;
beforeAll(async () => {
  aws = await AwsServer.start();
});
afterAll(() => aws.stop());
beforeEach(() => aws.reset());

/** Pressed when AWS is asked for this. */
function pressedAt(operation: string, ...args: string[]) {
  let press: (() => void) | undefined;
  aws.onRequest = (asked) => {
    if (asked === operation) press?.();
  };
  return cli([...args, "--endpoint-url", aws.endpoint], {
    onInterruptible: (interrupt) => {
      press = () => interrupt("SIGINT");
    },
  });
}

describe("Ctrl-C while deploying", () => {
  test("Ctrl-C before anything has begun: nothing is begun, and nothing stays", async () => {
    const shell = describeStacks({ name: "demo", status: "REVIEW_IN_PROGRESS" });
    aws.answers = {
      DescribeStacks: [noStack("demo"), shell],
      ...changeSet("CREATE_IN_PROGRESS"),
    };
    const { code, out, err } = await pressedAt(
      "DescribeChangeSet",
      "deploy",
      "-n",
      "demo",
      ...PLAIN,
    );
    expect([code, out, err]).toEqual([130, "", ""]);
    expect(aws.asked).not.toContain("ExecuteChangeSet");
    expect(aws.asked.slice(-2)).toEqual(["DeleteChangeSet", "DeleteStack"]);
  });

  test("Ctrl-C while the stack changes says that it goes on, and how to finish", async () => {
    const parameters = { EnableAggregator: "false", EnableProvisioner: "false" };
    const tags = stackTags("demo", {});
    const stack = (status: string) => describeStacks({ name: "demo", status, parameters, tags });
    aws.answers = {
      ...changeSet("CREATE_COMPLETE"),
      DescribeStacks: [stack("CREATE_COMPLETE"), stack("UPDATE_IN_PROGRESS")],
      GetTemplate: { body: "<GetTemplateResponse/>" },
    };
    const { code, err } = await pressedAt("ExecuteChangeSet", "deploy", "-n", "demo", ...PLAIN);
    expect(code).toBe(130);
    const there = `--name demo --endpoint-url ${aws.endpoint}`;
    expect(err.trimEnd().split("\n").at(-1)).toBe(
      `CloudFormation continues what it has begun. Follow it with: zae-limiter stack status ${there}. ` +
        `Finish it with: zae-limiter stack deploy ${there}`,
    );
    expect(aws.asked).not.toContain("DeleteChangeSet");
  });

  test("Ctrl-C ends the wait for an AWS that does not answer", async () => {
    aws.answers.DescribeStacks = failure(503, "ServiceUnavailable", "later");
    const { code } = await pressedAt("DescribeStacks", "deploy", "-n", "demo", ...PLAIN);
    expect([code, aws.asked]).toEqual([130, ["DescribeTable", "DescribeStacks"]]);
  });
});

test("many calls with one signal leave no listener on it", async () => {
  aws.answers.DescribeStacks = describeStacks();
  const { signal } = new AbortController();
  const connected = connectAws({ endpoint: aws.endpoint }, signal);
  for (let call = 0; call < 12; call += 1) await connected.send(DESCRIBE, {});
  connected.close();
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("Ctrl-C during a deletion prints how to continue", async () => {
  const tags = stackTags("demo", {});
  aws.answers.DescribeStacks = describeStacks({ name: "demo", status: "DELETE_IN_PROGRESS", tags });
  aws.answers = { ...changeSet(""), ...aws.answers };
  const args = ["delete", "-n", "demo", "--yes", "--with-data"];
  const { code, err } = await pressedAt("DeleteStack", ...args);
  expect(code).toBe(130);
  expect(err).toMatch(
    /continues what it has begun.*zae-limiter stack delete --with-data --name demo --endpoint-url \S+\n$/,
  );
});

describe("one line with what to do", () => {
  const lines = async (...args: string[]) => {
    const { code, err } = await cli(args);
    return [code, ...err.trimEnd().split("\n")];
  };

  test("a server that does not answer is reported as such", async () => {
    const place = ["--endpoint-url", "http://127.0.0.1:1"];
    expect(await lines("list", ...place)).toEqual([
      4,
      "zae-limiter: http://127.0.0.1:1 could not be reached for cloudformation:DescribeStacks. " +
        "Is it running?",
    ]);
  });

  test("an answer of another kind of server is reported as such", async () => {
    aws.answers.DescribeStacks = { body: "<html><title>Sign in</html>" };
    const [code, line, ...more] = await lines("list", "--endpoint-url", aws.endpoint);
    expect([code, more]).toEqual([4, []]);
    expect(line).toMatch(/is not an answer of AWS \(status 200\)\. Is there a proxy/);
  });
});

describe("a plan in words", () => {
  const plan: DeployPlan = {
    kind: "update",
    stackName: "demo",
    region: "eu-west-1",
    account: undefined,
    settings: [],
    tags: [],
    resources: [],
    adoptsTable: false,
    addsIndex: undefined,
    code: [],
    options: {},
    notes: [],
  };
  const change = {
    action: "Remove",
    resource: "AuditArchiveBucket",
    type: "AWS::S3::Bucket",
    replaced: false,
    kept: true,
    properties: [],
    replacedIfNeeded: [],
  };

  test("a plan in words says what is kept, what is replaced, and when it is only words", () => {
    expect(planText(plan)).toBe(
      "Stack demo will change:\n  only what the stack says about itself: outputs and descriptions",
    );
    const replaced = { ...change, action: "Modify", kept: false, replaced: true };
    expect(
      planText({ ...plan, resources: [change, replaced] })
        .split("\n")
        .slice(1),
    ).toEqual([
      "  - AuditArchiveBucket AWS::S3::Bucket, leaves the stack and is kept",
      "  ~ AuditArchiveBucket AWS::S3::Bucket, REPLACED",
    ]);
  });

  test("the printed plan of a new stack has the chosen settings, not the constant ones", () => {
    const settings = [
      { name: "SchemaVersion", before: undefined, after: "0.11.0" },
      { name: "LambdaMemorySize", before: undefined, after: "512" },
    ];
    const tags = [
      { name: "ManagedBy", before: undefined, after: "zae-limiter" },
      { name: "team", before: undefined, after: "search" },
    ];
    expect(planText({ ...plan, kind: "create", settings, tags })).toBe(
      "Stack demo will be created:\n  LambdaMemorySize: 512\n  tag team: search",
    );
  });
});
