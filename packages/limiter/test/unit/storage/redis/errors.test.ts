import {
  InfrastructureError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  isReplica,
  isUnknownScript,
  lateError,
  redisError,
} from "@zae-limiter/limiter/storage/redis/errors.ts";
import { describe, expect, it } from "vitest";

const AT = { place: "redis://cache:6379" };

function judged(text: string, wasSent = true) {
  const found = redisError(new Error(text), AT, wasSent) as RateLimiterUnavailable;
  expect(found).toBeInstanceOf(RateLimiterUnavailable);
  expect((found.cause as Error).message).toBe(text);
  expect(found.message).toContain(AT.place);
  return { reason: found.reason, nothingWritten: found.nothingWritten };
}

describe("errors of Redis", () => {
  it.each([
    ["READONLY You can't write against a read only replica.", "server"],
    ["MASTERDOWN Link with MASTER is down", "server"],
    ["LOADING Redis is loading the dataset in memory", "server"],
    ["BUSY Redis is busy running a script.", "timeout"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "server"],
    ["MISCONF Redis is configured to save RDB snapshots", "server"],
    ["NOREPLICAS Not enough good replicas to write.", "server"],
    ["CLUSTERDOWN Hash slot not served", "server"],
    ["TRYAGAIN Multiple keys request during rehashing of slot", "server"],
    ["ERR max number of clients reached", "server"],
    [
      "ERR Error running script (call to f_1): Script killed by user with SCRIPT KILL...",
      "timeout",
    ],
    [
      "ERR user_script:9: READONLY You can't write against a read only replica. script: 1",
      "server",
    ],
    ["ERR Error running script: @user_script: 9: -OOM command not allowed", "server"],
  ])("%s is unavailable, and nothing was written", (text, reason) => {
    expect(judged(text)).toEqual({ reason, nothingWritten: true });
  });

  it.each([
    "Connection is closed.",
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest"',
    "Socket closed unexpectedly",
    "read ECONNRESET",
    "Too many Cluster redirections. Last error: Error: Connection is closed.",
  ])("%s after sending leaves the outcome unknown", (text) => {
    expect(judged(text)).toEqual({ reason: "network", nothingWritten: false });
    expect(judged(text, false)).toEqual({ reason: "network", nothingWritten: true });
  });

  it.each([
    "connect ECONNREFUSED 127.0.0.1:1",
    "getaddrinfo ENOTFOUND cache",
    "Stream isn't writeable and enableOfflineQueue options is false",
  ])("%s says that nothing was sent", (text) => {
    expect(judged(text)).toEqual({ reason: "network", nothingWritten: true });
  });

  it("both addresses of a host that do not answer are one error", () => {
    const both = new AggregateError([new Error("connect ECONNREFUSED ::1:1")], "");
    const found = redisError(both, AT, true) as RateLimiterUnavailable;
    expect(found).toMatchObject({ reason: "network", nothingWritten: true });
  });

  it.each([
    ["NOAUTH Authentication required.", /asks for a user and a password/],
    ["WRONGPASS invalid username-password pair", /did not accept the user or password/],
    ["ERR invalid password", /did not accept the user or password/],
    ["NOPERM User x has no permissions to run the 'evalsha' command", /EVAL, EVALSHA, GET/],
    ["ERR unknown command 'EVALSHA', with args beginning with: 'a'", /does not run scripts/],
    ["MOVED 866 127.0.0.1:7001", /open a cluster client/],
    ["CROSSSLOT Keys in request don't hash to the same slot", /open a cluster client/],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", /other programs/],
    ["ERR something new", /refused a request/],
  ])("%s is refused, and waiting does not help", (text, sentence) => {
    const found = redisError(new Error(text), AT, true);
    expect(found).toBeInstanceOf(InfrastructureError);
    expect(found).not.toBeInstanceOf(RateLimiterUnavailable);
    expect(found.message).toMatch(sentence);
  });

  it("the command of an error, which may have a password, is left out", () => {
    const error = Object.assign(new Error("WRONGPASS"), { command: { args: ["AUTH", "secret"] } });
    const { cause } = redisError(error, AT, true);
    expect(cause).not.toHaveProperty("command");
  });

  it("a script that the server does not know is told apart, and so is a replica", () => {
    expect(isUnknownScript(new Error("NOSCRIPT No matching script."))).toBe(true);
    expect(isUnknownScript(new Error("ERR NOSCRIPT"))).toBe(false);
    expect(isReplica(new Error("READONLY You can't write"))).toBe(true);
    expect(isReplica(new Error("OOM"))).toBe(false);
  });

  it("a deadline before sending wrote nothing, and one after it may have", () => {
    expect(lateError(AT, 2000.4, false)).toMatchObject({ reason: "timeout", nothingWritten: true });
    expect(lateError(AT, 2000, true)).toMatchObject({ reason: "timeout", nothingWritten: false });
  });
});
