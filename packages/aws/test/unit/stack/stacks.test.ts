/** Deleting, tagging, finding and waiting. */

import { createHash } from "node:crypto";
import type { Aws } from "@zae-limiter/aws/client/aws.ts";
import { uploadTemplate } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import type { DeployContext } from "@zae-limiter/aws/deploy/deploy-context.ts";
import { ensureTags } from "@zae-limiter/aws/deploy/upgrade.ts";
import { eventSourceReady } from "@zae-limiter/aws/lambda/event-source.ts";
import { putCode } from "@zae-limiter/aws/lambda/lambda-code.ts";
import { findLimiters } from "@zae-limiter/aws/stack/discovery.ts";
import {
  deleteKeptBucket,
  deleteKeptTable,
  refuseToDelete,
  removeStack,
} from "@zae-limiter/aws/stack/remove-stack.ts";
import { findStack, type Stack } from "@zae-limiter/aws/stack/stack.ts";
import { hasDiscoveryTags, stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkCompatibility, parseVersion } from "@zae-limiter/limiter/domain/version.ts";
import { FakeAws, refusal, TABLE_EVENT } from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { describe, expect, test } from "vitest";

function contextOf(aws: Aws): DeployContext {
  return { aws, timer: instantTimer(), clock: () => 1_800_000_000_000, random: () => 0.5 };
}

async function stackOf(aws: FakeAws, name: string): Promise<Stack> {
  const stack = await findStack(aws, name);
  if (stack === undefined) throw new Error(`there is no stack ${name}`);
  return stack;
}

describe("deleting", () => {
  test("a missing stack is no error, any other failure is one with its cause (op 55)", async () => {
    const aws = new FakeAws();
    const context = contextOf(aws);
    await removeStack(context, "missing", "missing");

    const { id } = aws.add({ name: "demo", status: "CREATE_COMPLETE" });
    aws.deletion = {
      events: [{ ...TABLE_EVENT, status: "DELETE_FAILED", reason: "it is in use" }],
      end: "DELETE_FAILED",
    };
    await expect(removeStack(context, id, "demo")).rejects.toThrow(
      'Stack "demo": it could not be deleted: LimiterTable (AWS::DynamoDB::Table): it is in use',
    );
    aws.answers["cloudformation:DeleteStack"] = () => {
      throw refusal(
        "ValidationError",
        "Stack [demo] cannot be deleted while TerminationProtection is enabled",
      );
    };
    await expect(removeStack(context, id, "demo")).rejects.toThrow(/TerminationProtection/);
  });

  test("a kept table goes when it is wanted, unless it is protected", async () => {
    const aws = new FakeAws();
    let looks = 0;
    aws.answers["dynamodb:DeleteTable"] = () => ({});
    aws.answers["dynamodb:DescribeTable"] = () => {
      looks += 1;
      if (looks < 3) return {};
      throw refusal("ResourceNotFoundException", "gone");
    };
    expect(await deleteKeptTable(aws, "demo", instantTimer())).toBe(true);
    expect(looks).toBe(3);

    aws.answers["dynamodb:DeleteTable"] = () => {
      throw refusal("ResourceNotFoundException", "gone");
    };
    expect(await deleteKeptTable(aws, "demo", instantTimer())).toBe(false);
    aws.answers["dynamodb:DeleteTable"] = () => {
      throw refusal(
        "ValidationException",
        "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
      );
    };
    await expect(deleteKeptTable(aws, "demo", instantTimer())).rejects.toThrow(/protected/);
    await refuseToDelete(aws, "demo");
    const ours = {
      KeySchema: [
        { AttributeName: "PK", KeyType: "HASH" as const },
        { AttributeName: "SK", KeyType: "RANGE" as const },
      ],
      GlobalSecondaryIndexes: [{ IndexName: "GSI1" }, { IndexName: "GSI2" }],
    };
    aws.answers["dynamodb:DescribeTable"] = () => ({ Table: ours });
    await refuseToDelete(aws, "demo");
    aws.answers["dynamodb:DescribeTable"] = () => ({
      Table: { ...ours, DeletionProtectionEnabled: true },
    });
    await expect(refuseToDelete(aws, "demo")).rejects.toThrow(
      /protected.*--no-deletion-protection/,
    );
    // A table of other software may have a mistyped name.
    aws.answers["dynamodb:DescribeTable"] = () => ({
      Table: { KeySchema: [{ AttributeName: "id", KeyType: "HASH" }] },
    });
    await expect(refuseToDelete(aws, "demo")).rejects.toThrow(/not one of ours; it stays/);
  });

  test("a kept archive is emptied page by page, with all versions and marks of deletions", async () => {
    const aws = new FakeAws();
    let versions = ["a 1", "a 2", "b 3", "c 4"];
    const page = (names: readonly string[]) =>
      names.map((name) => ({ Key: name.slice(0, 1), VersionId: name.slice(2) }));
    aws.answers["s3:ListObjectVersions"] = () => ({
      Versions: page(versions.slice(0, 1)),
      DeleteMarkers: page(versions.slice(1, 2)),
    });
    aws.answers["s3:DeleteObjects"] = ({ Delete }) => {
      const deleted = Delete?.Objects?.map(({ Key, VersionId }) => `${Key} ${VersionId}`) ?? [];
      versions = versions.filter((name) => !deleted.includes(name));
      return {};
    };
    aws.answers["s3:DeleteBucket"] = () => ({});
    expect(await deleteKeptBucket(aws, "archive")).toBe(true);
    expect(versions).toEqual([]);
    expect(aws.sent("s3:DeleteObjects")).toHaveLength(2);
    aws.answers["s3:ListObjectVersions"] = () => {
      throw refusal("NoSuchBucket", "gone");
    };
    expect(await deleteKeptBucket(aws, "archive")).toBe(false);
  });
});

describe("tags", () => {
  test("our tags win over those of a user (op 57)", () => {
    expect(stackTags("demo", { ManagedBy: "x", team: "search" })).toMatchObject({
      ManagedBy: "zae-limiter",
      "zae-limiter:name": "demo",
      "zae-limiter:type": "limiter",
      team: "search",
    });
  });

  test("tags that are present ask for nothing; ZAEL-my-app is known as my-app (op 56)", async () => {
    const aws = new FakeAws();
    aws.add({
      name: "ZAEL-my-app",
      status: "CREATE_COMPLETE",
      tags: { ...stackTags("my-app", {}) },
    });
    expect(await ensureTags(contextOf(aws), await stackOf(aws, "ZAEL-my-app"))).toBe(false);
    expect(aws.writes).toEqual([]);
  });

  test("missing tags are added to the template and parameters that are there (op 56)", async () => {
    const aws = new FakeAws();
    aws.add({
      name: "demo",
      status: "UPDATE_COMPLETE",
      parameters: { EnableIAMRoles: "false", LambdaMemorySize: "512" },
      tags: { team: "search", "aws:servicecatalog:product": "x" },
    });
    expect(await ensureTags(contextOf(aws), await stackOf(aws, "demo"))).toBe(true);
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    expect(sent).toMatchObject({
      UsePreviousTemplate: true,
      Parameters: [
        { ParameterKey: "EnableIAMRoles", UsePreviousValue: true },
        { ParameterKey: "LambdaMemorySize", UsePreviousValue: true },
      ],
    });
    const { tags } = await stackOf(aws, "demo");
    expect(hasDiscoveryTags("demo", tags)).toBe(true);
    expect(tags.team).toBe("search");
    // AWS refuses to get back what it has set itself.
    expect(Object.keys(tags).filter((name) => name.startsWith("aws:"))).toEqual([]);
  });

  test("tags that CloudFormation does not set are reported as missing (op 56)", async () => {
    const aws = new FakeAws();
    const sketch = aws.add({ name: "demo", status: "CREATE_COMPLETE" });
    const stack = await stackOf(aws, "demo");
    aws.changes = undefined;
    const missing = /the tags are missing, and CloudFormation reports nothing to change/;
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(missing);
    aws.answers["cloudformation:CreateChangeSet"] = () => {
      throw refusal("ValidationError", "No updates are to be performed.");
    };
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(missing);
    // Another deployment has set them since the stack was read.
    Object.assign(sketch.tags, stackTags("demo", {}));
    expect(await ensureTags(contextOf(aws), stack)).toBe(false);
    aws.answers["cloudformation:CreateChangeSet"] = () => {
      throw refusal("LimitExceededException", "too many");
    };
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(/too many/);
  });

  test("a change set that cannot be begun does not stay", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "CREATE_COMPLETE" });
    const stack = await stackOf(aws, "demo");
    aws.answers["cloudformation:ExecuteChangeSet"] = () => {
      throw refusal("LimitExceededException", "too many");
    };
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(/too many/);
    expect(aws.writes.at(-1)).toBe("cloudformation:DeleteChangeSet");
  });

  test("tags that make the update fail are reported", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "CREATE_COMPLETE" });
    const stack = await stackOf(aws, "demo");
    aws.script = {
      events: [{ ...TABLE_EVENT, status: "UPDATE_FAILED", reason: "not allowed to tag" }],
      end: "UPDATE_ROLLBACK_COMPLETE",
    };
    await expect(ensureTags(contextOf(aws), stack)).rejects.toThrow(
      new StackOperationError("demo", "the tags could not be set: not allowed to tag"),
    );
  });
});

describe("the mapping of the aggregator (op 58)", () => {
  function withStates(...states: [state: string, lastResult?: string | null][]) {
    const aws = new FakeAws();
    let polls = 0;
    aws.answers["lambda:ListEventSourceMappings"] = () => {
      const [State, result] = states[Math.min(polls, states.length - 1)] as [string, string?];
      polls += 1;
      return { EventSourceMappings: [{ State, LastProcessingResult: result ?? undefined }] };
    };
    return { aws, polls: () => polls };
  }
  const ready = ({ aws }: { aws: FakeAws }, settleMs = 0) =>
    eventSourceReady(aws, "demo-aggregator", { timer: instantTimer(), settleMs });

  test("a mapping that is enabled and works is ready at once (op 58)", async () => {
    const source = withStates(["Enabled", "OK"]);
    expect(await ready(source)).toBe(true);
    expect(source.polls()).toBe(1);
    expect(await ready(withStates(["Enabled", "No records processed"]))).toBe(true);
  });

  test("a mapping that is disabled is not ready, which is said at once (op 58)", async () => {
    const source = withStates(["Disabled"]);
    expect(await ready(source)).toBe(false);
    expect(source.polls()).toBe(1);
  });

  test("a mapping that stays in creation ends as not ready (op 58)", async () => {
    const source = withStates(["Creating"]);
    expect(await ready(source)).toBe(false);
    expect(source.polls()).toBeGreaterThan(10);
  });

  test("a mapping without a result is waited for, and so is one that must settle (op 58)", async () => {
    const source = withStates(["Enabled", null], ["Enabled", null], ["Enabled", "OK"]);
    expect(await ready(source)).toBe(true);
    expect(source.polls()).toBe(3);
    const settling = withStates(["Enabled", "OK"]);
    expect(await ready(settling, 45_000)).toBe(true);
    expect(settling.polls()).toBe(10);
  });
});

describe("code", () => {
  test("the same code is not uploaded again without --force", async () => {
    const aws = new FakeAws();
    let sha256 = "";
    aws.answers["lambda:GetFunction"] = () => ({
      Configuration: { FunctionArn: "arn:f", CodeSha256: sha256 },
    });
    aws.answers["lambda:UpdateFunctionCode"] = ({ ZipFile = new Uint8Array() }) => {
      sha256 = createHash("sha256").update(ZipFile).digest("base64");
      return {};
    };
    aws.answers["lambda:TagResource"] = () => ({});
    const code = { stackName: "demo", functionName: "demo-f", zip: new Uint8Array([1, 2, 3]) };
    const upload = async (over: "older" | "all" = "older") =>
      (await putCode(aws, { ...code, over }, instantTimer())).changed;
    expect([await upload(), await upload(), await upload("all")]).toEqual([true, false, true]);
    expect(aws.sent("lambda:UpdateFunctionCode")).toHaveLength(2);
  });
});

describe("finding limiters (op 59)", () => {
  function region() {
    const aws = new FakeAws();
    aws.add({ name: "zeta", status: "CREATE_COMPLETE", tags: { ...stackTags("zeta", {}) } });
    aws.add({ name: "ZAEL-old", status: "UPDATE_COMPLETE" });
    aws.add({ name: "gone", status: "DELETE_COMPLETE", tags: { ...stackTags("gone", {}) } });
    aws.add({
      name: "planned",
      status: "REVIEW_IN_PROGRESS",
      tags: { ...stackTags("planned", {}) },
    });
    aws.add({ name: "other-software", status: "CREATE_COMPLETE" });
    aws.add({
      name: "load",
      status: "CREATE_COMPLETE",
      tags: { ...stackTags("load", {}), "zae-limiter:type": "load-test" },
    });
    return aws;
  }

  test("without the tagging API all stacks are looked at", async () => {
    const aws = region();
    aws.answers["tag:GetResources"] = () => {
      throw refusal("AccessDeniedException", "no");
    };
    const found = await findLimiters(aws, "us-east-1");
    expect(found.map(({ userName }) => userName)).toEqual(["load", "old", "zeta"]);
    expect(found.map(({ stackType }) => stackType)).toEqual(["load-test", "limiter", "limiter"]);
    expect(found[2]).toMatchObject({
      stackName: "zeta",
      version: "0.1.0",
      schemaVersion: "0.11.0",
      creationTime: "2026-01-02T03:04:05Z",
    });
    expect(found[1]).toMatchObject({ stackName: "ZAEL-old", version: undefined });
  });

  test("a stack that is found by its tags and by its name is listed once, over all pages", async () => {
    const aws = region();
    const arn = (name: string) => `arn:aws:cloudformation:us-east-1:1:stack/${name}/id`;
    aws.answers["tag:GetResources"] = ({ PaginationToken }) =>
      PaginationToken === undefined
        ? { ResourceTagMappingList: [{ ResourceARN: arn("zeta") }], PaginationToken: "more" }
        : { ResourceTagMappingList: [{ ResourceARN: arn("load") }], PaginationToken: "" };
    const found = await findLimiters(aws, "us-east-1");
    expect(found.map(({ userName }) => userName)).toEqual(["load", "old", "zeta"]);
    expect(aws.sent("tag:GetResources")).toHaveLength(2);
  });

  test("an invalid time is left out", async () => {
    const aws = new FakeAws();
    const createdAt = new Date(Number.NaN);
    aws.add({ name: "ZAEL-a", status: "CREATE_COMPLETE", createdAt });
    aws.answers["tag:GetResources"] = () => ({});
    expect((await findLimiters(aws, "us-east-1"))[0]?.creationTime).toBe("");
  });
});

describe("a template that is too long for a request", () => {
  test("a template that is too long for a request goes through a bucket that is gone afterwards", async () => {
    const aws = new FakeAws();
    for (const action of [
      "s3:CreateBucket",
      "s3:PutObject",
      "s3:DeleteObjects",
      "s3:DeleteBucket",
    ] as const) {
      aws.answers[action] = () => ({}) as never;
    }
    const uploaded = await uploadTemplate(aws, "x".repeat(51_201), { random: () => 0 });
    const bucket = `zae-limiter-${"a".repeat(20)}`;
    expect(uploaded.template).toEqual({
      url: `https://${bucket}.s3.us-east-1.amazonaws.com/template.json`,
    });
    await uploaded.remove();
    expect(aws.writes).toEqual([
      "s3:CreateBucket",
      "s3:PutObject",
      "s3:DeleteObjects",
      "s3:DeleteBucket",
    ]);
    const short = await uploadTemplate(aws, "x".repeat(51_200), { random: () => 0 });
    expect("body" in short.template).toBe(true);
    const local = { random: () => 0, endpoint: "http://127.0.0.1:5000/", bytesMax: 1 };
    expect((await uploadTemplate(aws, "xx", local)).template).toEqual({
      url: `http://127.0.0.1:5000/${bucket}/template.json`,
    });
  });

  test("a template that is too long for a request leaves no bucket when it cannot be written", async () => {
    const aws = new FakeAws();
    aws.answers["s3:CreateBucket"] = () => ({});
    aws.answers["s3:DeleteBucket"] = () => ({});
    aws.answers["s3:PutObject"] = () => {
      throw refusal("SlowDown", "no");
    };
    await expect(uploadTemplate(aws, "xx", { random: () => 0, bytesMax: 1 })).rejects.toThrow(/no/);
    expect(aws.writes.at(-1)).toBe("s3:DeleteBucket");
  });
});

describe("versions (op 60)", () => {
  const check = (client: string, more: { schema?: string; clientMin?: string; lambda?: string }) =>
    checkCompatibility({ client, schema: "1.0.0", clientMin: "0.0.0", ...more });

  test("a development version is a prerelease; an older Lambda wants an update", () => {
    expect(parseVersion("0.1.0.dev123+gabc")?.prerelease).toBe("dev");
    expect(check("1.1.0", { lambda: "1.0.0" })).toMatchObject({
      compatible: true,
      needsLambdaUpdate: true,
    });
  });

  test("another major version wants a migration; a client below the minimum may not", () => {
    expect(check("2.0.0", { schema: "1.0.0" })).toMatchObject({
      compatible: false,
      needsMigration: true,
    });
    expect(check("1.0.0", { clientMin: "1.2.0" }).compatible).toBe(false);
  });
});
