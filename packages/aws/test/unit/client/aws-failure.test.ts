import { connectAws } from "@zae-limiter/aws/client/aws.ts";
import {
  AwsRefusal,
  AwsUnavailable,
  explainAwsError,
  MissingServiceError,
} from "@zae-limiter/aws/client/aws-failure.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { describe, expect, test, vi } from "vitest";

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
      /No AWS credentials found\. Sign in with .*AWS_ACCESS_KEY_ID.*\(Could not load credentials from any/,
    ],
    ["old credentials", named("ExpiredTokenException"), /have expired\. Sign in again/],
    ["wrong credentials", named("InvalidClientTokenId"), /does not know these credentials\. Check/],
    [
      "no permission",
      named("AccessDenied", "User x is not authorized"),
      /may not do cloudformation:CreateChangeSet\. Ask for that permission.*User x is not/,
    ],
  ])("a failure of AWS is one line with what to do: %s", (_, error, expected) => {
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

  test("any other error of AWS keeps its name, and errors of this library pass", () => {
    const explained = explainAwsError(named("ValidationError", "no such stack"), "x:Y", undefined);
    expect(explained).toBeInstanceOf(AwsRefusal);
    expect(explained).toMatchObject({ awsCode: "ValidationError", detail: "no such stack" });
    expect(explainAwsError(explained, "x:Y", undefined)).toBe(explained);
    expect(explainAwsError(undefined, "x:Y", undefined).message).toContain("undefined");
  });

  test("an answer of a server that has only DynamoDB is recognised", () => {
    const unknown = named("NotFound", "Unknown", { $metadata: { httpStatusCode: 404 } });
    const explain = (action: string, endpoint: string | undefined, error: object = unknown) =>
      explainAwsError(error, action, endpoint);
    const local = "http://127.0.0.1:8000";
    const missing = explain("cloudformation:DescribeStacks", local);
    expect(missing).toBeInstanceOf(MissingServiceError);
    expect(missing.message).toMatch(/^http:\/\/127\.0\.0\.1:8000 has DynamoDB only/);
    const unreadable = (headers: object) =>
      named("Error", "XML parse error\n  Deserialization error: see $response", {
        $metadata: { httpStatusCode: 500 },
        $response: { statusCode: 500, headers },
      });
    // As DynamoDB Local answers.
    const ofDynamo = unreadable({ "content-type": "application/x-amz-json-1.0" });
    expect(explain("cloudformation:DescribeStacks", local, ofDynamo)).toBeInstanceOf(
      MissingServiceError,
    );
    // As an emulator of all of AWS answers when it is broken.
    const broken = unreadable({ "content-type": "text/html; charset=utf-8" });
    expect(explain("cloudformation:DescribeStacks", local, broken)).toBeInstanceOf(AwsUnavailable);
    expect(explain("dynamodb:DescribeTable", local)).toBeInstanceOf(AwsRefusal);
    expect(explain("cloudformation:DescribeStacks", undefined)).toBeInstanceOf(AwsRefusal);
    const refused = named("ValidationError", "no such stack", {
      $metadata: { httpStatusCode: 400 },
    });
    expect(explain("cloudformation:DescribeStacks", local, refused)).toBeInstanceOf(AwsRefusal);
  });

  test("a refused connection is reported long before the SDK would give up", async () => {
    const handle = vi.fn(() => Promise.reject(named("Error", "x", { code: "ECONNREFUSED" })));
    const aws = connectAws({
      endpoint: "http://engine.example:8000",
      region: "us-east-1",
      credentials: { accessKeyId: "a", secretAccessKey: "b" },
      requestHandler: { handle },
    });
    await expect(aws.send("cloudformation:DescribeStacks", {})).rejects.toThrow(
      /could not be reached for cloudformation:DescribeStacks\. Is it running\?$/,
    );
    // The SDK alone would try eight times.
    expect(handle).toHaveBeenCalledTimes(2);
    aws.close();
  });

  test("a local endpoint needs no region and no credentials, and reports when no server answers", async () => {
    const aws = connectAws({ endpoint: "http://127.0.0.1:1", maxAttempts: 1 });
    await expect(aws.send("cloudformation:DescribeStacks", {})).rejects.toThrow(
      /http:\/\/127\.0\.0\.1:1 could not be reached for cloudformation:DescribeStacks/,
    );
    expect(await aws.region()).toBe("us-east-1");
    aws.close();
  });
});
