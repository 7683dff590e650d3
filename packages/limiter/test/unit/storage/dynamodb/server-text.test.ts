import { inspect } from "node:util";
import { serverText, withServerText } from "@zae-limiter/limiter/storage/dynamodb/server-text.ts";
import { describe, expect, test } from "vitest";

const TOKEN = `IQoJb3JpZ2luX2VjEJr${"aB3+/".repeat(80)}==`;
const SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

describe("messages of servers", () => {
  test.each([
    ["a session token", `x-amz-security-token: ${TOKEN}`, "x-amz-security-token: [hidden]"],
    ["a secret key", `key ${SECRET} is wrong`, "key [hidden] is wrong"],
    ["an access key", "AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", "[hidden] and [hidden]"],
    [
      "an authorization header",
      `AWS4-HMAC-SHA256 Credential=a/b/c, SignedHeaders=host, Signature=${"0a".repeat(32)}`,
      "AWS4-HMAC-SHA256 [hidden], SignedHeaders=host, [hidden]",
    ],
  ])("messages of servers lose %s", (_, message, expected) => {
    expect(serverText(message)).toBe(expected);
  });

  test("messages of servers keep what a user needs, on one line", () => {
    const denied =
      "User: arn:aws:sts::123456789012:assumed-role/my-application-role-for-production/i-0abcdef\n" +
      "  is not authorized to perform: dynamodb:GetItem on resource: arn:aws:dynamodb:x:1:table/t";
    expect(serverText(denied)).toBe(denied.replace(/\s+/g, " "));
  });

  test("messages of servers that are too long are cut", () => {
    const text = serverText("no ".repeat(100_000));
    expect(text).toHaveLength(403);
    expect(text.endsWith("...")).toBe(true);
  });

  test("messages of servers are changed in the error itself, so that printing it shows no more", () => {
    const error = withServerText(new Error(`denied for ${TOKEN}`));
    expect(inspect(error)).toMatch(/denied for \[hidden\]/);
    expect(inspect(error)).not.toContain(TOKEN);
    expect(withServerText("text")).toBe("text");
  });
});
