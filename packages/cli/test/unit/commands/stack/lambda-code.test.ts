/** Code that is there already: newer, that of others, or being replaced at this moment. */

import { createHash } from "node:crypto";
import type { Deployed } from "@zae-limiter/aws/deploy/deploy.ts";
import { ensureTags } from "@zae-limiter/aws/deploy/upgrade.ts";
import { type Overwriting, putCode } from "@zae-limiter/aws/lambda/lambda-code.ts";
import { findStack, type Stack } from "@zae-limiter/aws/stack/stack.ts";
import { LAMBDA_VERSION_TAG } from "@zae-limiter/aws/stack/stack-tags.ts";
import { resultText } from "@zae-limiter/cli/commands/stack/deploy-text.ts";
import { PLAIN } from "@zae-limiter/cli/terminal/palette.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { FakeAws, refusal } from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { expect, test } from "vitest";

const ZIP = new Uint8Array([1, 2, 3]);
const sha256Of = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("base64");

/** A Lambda with code of a version. */
function withCode(version: string | undefined) {
  const aws = new FakeAws();
  const Tags: Record<string, string> =
    version === undefined ? {} : { [LAMBDA_VERSION_TAG]: version };
  const found = { sha256: "theirs", Tags };
  aws.answers["lambda:GetFunction"] = () => ({
    Configuration: { FunctionArn: "arn:f", CodeSha256: found.sha256, CodeSize: 77 },
    Tags: found.Tags,
  });
  aws.answers["lambda:UpdateFunctionCode"] = ({ ZipFile = new Uint8Array() }) => {
    found.sha256 = sha256Of(ZipFile);
    return {};
  };
  aws.answers["lambda:TagResource"] = ({ Tags: given }) => {
    found.Tags = { ...found.Tags, ...given };
    return {};
  };
  const put = (over: Overwriting) =>
    putCode(aws, { stackName: "demo", functionName: "demo-f", zip: ZIP, over }, instantTimer());
  return { aws, found, put };
}

test("newer code stays, and is named by its version", async () => {
  const { aws, put } = withCode("2.0.0");
  expect(await put("older")).toEqual({
    functionArn: "arn:f",
    sizeBytes: 77,
    sha256: "theirs",
    changed: false,
    version: "2.0.0",
  });
  expect(aws.writes).toEqual([]);
});

test.each<[string | undefined, Overwriting]>([
  ["2.0.0", "all"],
  // A version of the Python library is no version of ours.
  ["0.10.0", "other"],
  ["0.0.9", "older"],
  [CLIENT_VERSION, "older"],
  ["what?", "older"],
  [undefined, "older"],
])("code of version %s gives way to %s", async (version, over) => {
  const { found, put } = withCode(version);
  expect(await put(over)).toMatchObject({ changed: true, version: CLIENT_VERSION });
  expect(found).toEqual({ sha256: sha256Of(ZIP), Tags: { [LAMBDA_VERSION_TAG]: CLIENT_VERSION } });
});

test("the code is checked again when another client uploads at the same moment", async () => {
  const { aws, found, put } = withCode(undefined);
  let times = 0;
  aws.answers["lambda:UpdateFunctionCode"] = () => {
    times += 1;
    if (times === 2) found.sha256 = sha256Of(ZIP);
    throw refusal("ResourceConflictException", "An update is in progress");
  };
  expect(await put("older")).toMatchObject({ changed: false, version: CLIENT_VERSION });
  expect(times).toBe(2);
  // But not without end.
  found.sha256 = "theirs";
  times = 2;
  await expect(put("older")).rejects.toThrow(/in progress/);
  expect(times).toBeLessThan(50);
});

test("the tags that a stack hands on to its Lambdas name the version they run", async () => {
  const aws = new FakeAws();
  aws.add({ name: "demo", status: "UPDATE_COMPLETE" });
  const context = { aws, timer: instantTimer(), clock: () => 1, random: () => 0.5 };
  await ensureTags(context, (await findStack(aws, "demo")) as Stack, "2.0.0");
  expect(aws.stacks[0]?.tags).toMatchObject({
    "zae-limiter:version": CLIENT_VERSION,
    [LAMBDA_VERSION_TAG]: "2.0.0",
  });
});

test("the result of a deployment names newer code", () => {
  const code = {
    lambda: "aggregator",
    functionName: "demo-aggregator",
    functionArn: "arn:f",
    sizeBytes: 2048,
    sha256: "abc",
    changed: false,
  } as const;
  const text = (version: string) => {
    const plan = { kind: "nothing", stackName: "demo" };
    const result = { outcome: "done", plan, stackId: "arn:s", code: [{ ...code, version }] };
    return resultText(result as unknown as Deployed, { name: "demo" }, PLAIN).split("\n")[2];
  };
  expect(text(CLIENT_VERSION)).toBe("  demo-aggregator: 2.0 KB, abc (as it was)");
  expect(text("2.0.0")).toBe(
    "  demo-aggregator: 2.0 KB, abc (as it was: version 2.0.0, which is newer than this client)",
  );
});
