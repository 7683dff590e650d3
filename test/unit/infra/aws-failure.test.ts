import { describe, expect, test } from "vitest";
import { InfrastructureError, RateLimiterUnavailable } from "../../../src/domain/errors.ts";
import { connectAws } from "../../../src/infra/aws.ts";
import { AwsRefusal, explainAwsError } from "../../../src/infra/aws-failure.ts";

function named(name: string, message = "detail", more: object = {}): Error {
  return Object.assign(new Error(message), { name, ...more });
}

describe("what AWS says, in one line with what to do", () => {
  test.each<[string, Error, RegExp]>([
    [
      "no region",
      new Error("Region is missing"),
      /no AWS region\. Pass --region .* set AWS_REGION$/,
    ],
    [
      "no credentials",
      named("CredentialsProviderError", "Could not load credentials\n from any providers"),
      /no AWS credentials\. Sign in with .*AWS_ACCESS_KEY_ID.*\(Could not load credentials from any/,
    ],
    ["old credentials", named("ExpiredTokenException"), /have expired\. Sign in again/],
    ["wrong credentials", named("InvalidClientTokenId"), /does not know these credentials\. Check/],
    [
      "no permission",
      named("AccessDenied", "User x is not authorized"),
      /may not do cloudformation:CreateChangeSet\. Ask for that permission.*User x is not/,
    ],
  ])("%s", (_, error, expected) => {
    const explained = explainAwsError(error, "cloudformation:CreateChangeSet", undefined);
    expect(explained).toBeInstanceOf(InfrastructureError);
    expect(explained.message).toMatch(expected);
    expect(explained.message).not.toContain("\n");
    expect(explained.cause).toBe(error);
  });

  test.each<[string, object, RegExp]>([
    [
      "network",
      named("Error", "x", { code: "ECONNREFUSED" }),
      /could not be reached.*Is it running/,
    ],
    ["several addresses", { errors: [{ code: "ECONNREFUSED" }] }, /could not be reached/],
    ["throttling", named("ThrottlingException", "Rate exceeded"), /throttled.*in a minute/],
    ["a server error", { message: "boom", $metadata: { httpStatusCode: 503 } }, /status 503.*boom/],
  ])("%s is for later", (_, error, expected) => {
    const explained = explainAwsError(error, "lambda:GetFunction", "http://127.0.0.1:1");
    expect(explained).toBeInstanceOf(RateLimiterUnavailable);
    expect(explained.message).toMatch(expected);
  });

  test("anything else keeps its name, and errors of ours pass", () => {
    const explained = explainAwsError(named("ValidationError", "no such stack"), "x:Y", undefined);
    expect(explained).toBeInstanceOf(AwsRefusal);
    expect(explained).toMatchObject({ awsCode: "ValidationError", detail: "no such stack" });
    expect(explainAwsError(explained, "x:Y", undefined)).toBe(explained);
    expect(explainAwsError(undefined, "x:Y", undefined).message).toContain("undefined");
  });

  test("a local endpoint needs no region and no credentials, and says when nobody is there", async () => {
    const aws = connectAws({ endpoint: "http://127.0.0.1:1", maxAttempts: 1 });
    await expect(aws.send("cloudformation:DescribeStacks", {})).rejects.toThrow(
      /http:\/\/127\.0\.0\.1:1 could not be reached for cloudformation:DescribeStacks/,
    );
    expect(await aws.region()).toBe("us-east-1");
    aws.close();
  });
});
