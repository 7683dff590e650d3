/** The custom resource answers to CloudFormation and to no other host. */

import { createLimitsHandler } from "@zae-limiter/aws/limits-resource/lambda.ts";
import { checkReplyAddress, type ReplyPlace } from "@zae-limiter/aws/limits-resource/reply.ts";
import { describe, expect, test } from "vitest";
import { CloudFormation, LOCAL_PLACE } from "./requests.ts";

const BUCKET = "cloudformation-custom-resource-response";
const SIGNED = "/arn%3Aaws%3Acloudformation?AWSAccessKeyId=A&Expires=1&Signature=secret";
const ON_AWS: ReplyPlace = { region: "eu-west-1" };

describe("an answer", () => {
  test.each([
    ["us-east-1", `https://${BUCKET}-useast1.s3.amazonaws.com${SIGNED}`],
    ["us-east-1", `https://${BUCKET}-useast1.s3.us-east-1.amazonaws.com:443${SIGNED}`],
    ["eu-west-1", `https://${BUCKET}-euwest1.s3-eu-west-1.amazonaws.com${SIGNED}`],
    ["eu-west-1", `https://${BUCKET}-euwest1.s3.dualstack.eu-west-1.amazonaws.com${SIGNED}`],
    ["us-gov-west-1", `https://${BUCKET}-usgovwest1.s3.us-gov-west-1.amazonaws.com${SIGNED}`],
    ["cn-north-1", `https://${BUCKET}-cnnorth1.s3.cn-north-1.amazonaws.com.cn${SIGNED}`],
  ])("an answer goes to the bucket of CloudFormation in %s: %s", (region, address) => {
    expect(() => checkReplyAddress(address, { region })).not.toThrow();
  });

  test.each([
    ["another host", `https://example.com${SIGNED}`],
    ["plain http", `http://${BUCKET}-euwest1.s3.eu-west-1.amazonaws.com${SIGNED}`],
    ["a bucket of another region", `https://${BUCKET}-useast1.s3.amazonaws.com${SIGNED}`],
    [
      "a bucket with a similar name",
      `https://${BUCKET}-euwest1x.s3.eu-west-1.amazonaws.com${SIGNED}`,
    ],
    ["a host that begins alike", `https://${BUCKET}-euwest1.s3.eu-west-1.amazonaws.com.evil.org/`],
    ["a name before @", `https://${BUCKET}-euwest1.s3.eu-west-1.amazonaws.com@evil.org/`],
    ["another port", `https://${BUCKET}-euwest1.s3.eu-west-1.amazonaws.com:8443/`],
    ["instance metadata", "http://169.254.169.254/latest/api/token"],
    ["this machine, from AWS", "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next"],
    ["no address", "answer"],
  ])("an answer does not go to %s", (_, address) => {
    expect(() => checkReplyAddress(address, ON_AWS)).toThrow(
      /expected an https address of CloudFormation in eu-west-1, got the host/,
    );
  });

  test("an answer does not go anywhere when the region of the function is unknown", () => {
    const address = `https://${BUCKET}-.s3.amazonaws.com${SIGNED}`;
    expect(() => checkReplyAddress(address, { region: undefined })).toThrow("ResponseURL");
  });

  test("an answer goes to this machine where the table is on this machine, and only there", () => {
    expect(() => checkReplyAddress("http://127.0.0.1:1/answer", LOCAL_PLACE)).not.toThrow();
    expect(() => checkReplyAddress("http://10.0.0.1:1/answer", LOCAL_PLACE)).toThrow("10.0.0.1:1");
  });
});

test("a request with another address is refused before anything is done, without its secret", async () => {
  const cloudFormation = await CloudFormation.start();
  const lines: string[] = [];
  let opened = 0;
  const handler = createLimitsHandler({
    table: "my-app",
    open: () => {
      opened += 1;
      throw new Error("the table was opened");
    },
    timer: { nowMs: () => 0, sleep: () => new Promise(() => undefined) },
    place: ON_AWS,
    log: (line) => void lines.push(line),
  });
  try {
    const call = handler(cloudFormation.event({ type: "Create" }));
    await expect(call).rejects.toMatchObject({ code: "ZAEL_VALIDATION" });
    await expect(call).rejects.not.toThrow("secret");
    expect([opened, lines, cloudFormation.requests]).toEqual([0, [], []]);
  } finally {
    await cloudFormation.stop();
  }
});
