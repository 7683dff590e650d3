/** Whose a stack is: what is not ours is neither changed nor deleted. */

import { preparePlan } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import type { DeployContext } from "@zae-limiter/aws/deploy/deploy-context.ts";
import { isOurs } from "@zae-limiter/aws/deploy/ownership.ts";
import { findStack, type Stack } from "@zae-limiter/aws/stack/stack.ts";
import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import { compactTemplate, stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { AwsServer, changeSet, describeStacks } from "@zae-limiter/test-support/aws/aws-server.ts";
import { FakeAws } from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const PLAIN = { enableAggregator: false, enableProvisioner: false };
const WEBSITE = { Resources: { Site: { Type: "AWS::S3::Bucket", Properties: {} } } };

function contextOf(aws: FakeAws): DeployContext {
  return { aws, timer: instantTimer(), clock: () => 1_800_000_000_000, random: () => 0.5 };
}

/** Our table, in the template of an application. */
function withOther(Type: string): string {
  const { Resources, ...rest } = stackTemplate();
  const Other = { Type, Properties: {} };
  return compactTemplate({ ...rest, Resources: { ...Resources, Other } });
}

function tableWith(KeySchema: unknown, GlobalSecondaryIndexes: unknown): string {
  const Properties = { KeySchema, GlobalSecondaryIndexes };
  return JSON.stringify({ Resources: { T: { Type: "AWS::DynamoDB::Table", Properties } } });
}

const KEYS = [{ AttributeName: "PK" }, { AttributeName: "SK" }];
const INDEXES = [{ IndexName: "GSI1" }, { IndexName: "GSI2" }];

describe("a stack is ours", () => {
  test.each<[string, boolean, Partial<Stack>, string]>([
    ["by its tag", true, { tags: { ManagedBy: "zae-limiter" } }, JSON.stringify(WEBSITE)],
    ["by a name of old", true, { name: "ZAEL-demo" }, JSON.stringify(WEBSITE)],
    ["as a shell", true, { status: "REVIEW_IN_PROGRESS" }, "{}"],
    ["by its table", true, {}, tableWith(KEYS, INDEXES)],
    ["by our template", true, {}, compactTemplate(stackTemplate())],
    ["with what goes with it", true, {}, withOther("AWS::Lambda::Permission")],
    ["not with other keys", false, {}, tableWith([{ AttributeName: "id" }], INDEXES)],
    ["not with other indexes", false, {}, tableWith(KEYS, [{ IndexName: "GSI1" }])],
    ["not with unreadable keys", false, {}, tableWith({ "Fn::If": [] }, INDEXES)],
    ["not without a table", false, {}, JSON.stringify(WEBSITE)],
    ["not with a template that is none", false, {}, "what?"],
    ["not with other things", false, {}, withOther("AWS::EC2::VPC")],
    ["not by the tag of other software", false, { tags: { ManagedBy: "cdk" } }, "{}"],
  ])("a stack is ours %s: %s", async (_, expected, stack, template) => {
    const aws = new FakeAws();
    aws.template = template;
    const { name } = aws.add({ name: "demo", status: "CREATE_COMPLETE", ...(stack as object) });
    expect(await isOurs(aws, (await findStack(aws, name)) as Stack)).toBe(expected);
  });
});

test.each(["CREATE_COMPLETE", "ROLLBACK_COMPLETE", "DELETE_FAILED", "UPDATE_IN_PROGRESS"])(
  "deploy leaves a stack of other software alone in %s",
  async (status) => {
    const aws = new FakeAws();
    aws.template = JSON.stringify(WEBSITE);
    aws.add({ name: "demo", status, tags: { team: "web" } });
    await expect(preparePlan(contextOf(aws), "demo", PLAIN, false)).rejects.toThrow(
      'Stack "demo": there is a stack of that name, and it is not one of ours: it has neither the ' +
        "tag ManagedBy=zae-limiter nor our table. Nothing was changed; choose another name",
    );
    expect(aws.writes).toEqual([]);
  },
);

test("an application that holds our table is refused, with the resource that is not ours", async () => {
  const aws = new FakeAws();
  aws.template = withOther("AWS::EC2::VPC");
  aws.add({ name: "demo", status: "CREATE_COMPLETE" });
  const work = preparePlan(contextOf(aws), "demo", PLAIN, false);
  await expect(work).rejects.toThrow(
    /not one of ours: .*more in it than ours have \(AWS::EC2::VPC/,
  );
});

describe("delete", () => {
  let aws: AwsServer;
  beforeAll(async () => {
    aws = await AwsServer.start();
  });
  afterAll(() => aws.stop());

  const template = (body: string) => ({
    body:
      `<GetTemplateResponse><GetTemplateResult><TemplateBody>${body}</TemplateBody>` +
      "</GetTemplateResult></GetTemplateResponse>",
  });

  test.each([["--with-data"], ["--no-wait"]])(
    "delete leaves a stack of other software alone with %s",
    async (option) => {
      aws.asked.length = 0;
      aws.answers = {
        ...changeSet(""),
        DescribeStacks: describeStacks({ name: "demo", status: "CREATE_COMPLETE" }),
        GetTemplate: template("Resources: {Site: {Type: AWS::S3::Bucket}}"),
      };
      const place = ["-n", "demo", "--yes", "--endpoint-url", aws.endpoint];
      const { code, err } = await cli(["delete", option, ...place]);
      expect([code, err]).toEqual([1, expect.stringMatching(/not one of ours.*another name\n$/)]);
      expect(aws.asked).toEqual(["DescribeStacks", "GetTemplate"]);
    },
  );

  test("delete deletes a stack with our tag without asking for its template", async () => {
    aws.asked.length = 0;
    const tags = stackTags("demo", {});
    aws.answers = {
      ...changeSet(""),
      DescribeStacks: [
        describeStacks({ name: "demo", status: "CREATE_COMPLETE", tags }),
        describeStacks({ name: "demo", status: "DELETE_COMPLETE", tags }),
      ],
    };
    const { code } = await cli(["delete", "-n", "demo", "--yes", "--endpoint-url", aws.endpoint]);
    expect(code).toBe(0);
    expect(aws.asked).not.toContain("GetTemplate");
  });
});
