import { isLocalEndpoint, isLoopback } from "@zae-limiter/limiter/base/loopback.ts";
import { describe, expect, test } from "vitest";

describe("endpoints on this machine", () => {
  test.each([
    "http://localhost:8000",
    "http://LOCALHOST:8000",
    "http://127.0.0.1:8000",
    "http://127.0.0.2",
    "http://127.255.255.254:1/path",
    "http://127.1:8000",
    "http://[::1]:8000",
    "http://[0:0:0:0:0:0:0:1]:8000",
    "http://[::ffff:127.0.0.1]:8000",
    "http://[::ffff:127.8.9.10]:8000",
  ])("%s is one and gets no real credentials", (endpoint) => {
    expect(isLoopback(endpoint)).toBe(true);
    expect(isLocalEndpoint(endpoint)).toBe(true);
  });

  test.each([
    undefined,
    "",
    "localhost",
    "http://0.0.0.0:8000",
    "http://[::]:8000",
    "http://128.0.0.1",
    "http://1127.0.0.1.example",
    "http://127.0.0.1.example.com",
    "http://127.0.0.1@evil.example",
    "http://localhost.evil.example",
    "http://[::ffff:128.0.0.1]",
    "http://[::ffff:10.0.0.1]",
    "http://[2001:db8::7f00:1]",
    "https://dynamodb.eu-west-1.amazonaws.com",
  ])("the endpoint %s is no loopback address", (endpoint) => {
    expect(isLoopback(endpoint)).toBe(false);
  });

  test.each(["http://0.0.0.0:8000", "http://0:8000", "http://[::]:8000", "http://[0::0]:8000"])(
    "the endpoint %s is every address of a machine and gets no real credentials",
    (endpoint) => {
      expect(isLocalEndpoint(endpoint)).toBe(true);
      expect(isLoopback(endpoint)).toBe(false);
    },
  );

  test("the endpoints of AWS and of other machines get real credentials", () => {
    for (const endpoint of [
      undefined,
      "0.0.0.0",
      "http://0.0.0.0.example.com",
      "http://10.0.0.1:8000",
      "https://dynamodb.eu-west-1.amazonaws.com",
    ]) {
      expect(isLocalEndpoint(endpoint)).toBe(false);
    }
  });
});
