import { Refused } from "@zae-limiter/gateway/answers.ts";
import { readAllowedPath, routeOf } from "@zae-limiter/gateway/routes.ts";
import { describe, expect, test } from "vitest";

function route(method: string, url: string, headers = {}, allowed: string[] = []) {
  try {
    const found = routeOf({ method, url, headers }, allowed);
    return found.kind === "call" ? { ...found, format: found.format.api } : found;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.status;
  }
}

describe("calls that are counted", () => {
  test.each([
    ["/v1/chat/completions", "chat", "/chat/completions"],
    ["/chat/completions", "chat", "/chat/completions"],
    ["/v1/chat/completions/", "chat", "/chat/completions"],
    ["http://example.com/v1/chat/completions", "chat", "/chat/completions"],
    ["/v1/completions", "completions", "/completions"],
    ["/v1/responses?include[]=a", "responses", "/responses?include[]=a"],
    ["/v1/embeddings", "embeddings", "/embeddings"],
    ["/v1/messages?beta=true", "messages", "/messages?beta=true"],
    ["/openai/v1/responses", "responses", "/openai/v1/responses"],
  ])("POST %s is a call of %s", (url, format, path) => {
    expect(route("POST", url)).toEqual({ kind: "call", format, path });
    for (const method of ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]) {
      expect(route(method, url)).toBe(405);
    }
  });

  test("the deployment of Azure is in the path, with its escapes written in one way", () => {
    const url = "/openai/deployments/my%2Dmodel%20a/chat/completions?api-version=2025-01-01";
    expect(route("POST", url)).toEqual({
      kind: "call",
      format: "chat",
      deployment: "my-model a",
      path: "/openai/deployments/my-model%20a/chat/completions?api-version=2025-01-01",
    });
    expect(route("POST", "/openai/deployments/a%2Fb/embeddings")).toMatchObject({
      path: "/openai/deployments/a%2Fb/embeddings",
    });
    expect(route("POST", "/openai/deployments/%2e%2e/chat/completions")).toBe(404);
    expect(route("POST", "/openai/deployments/%zz/chat/completions")).toBe(400);
  });

  test("counting tokens is one request, and models, responses and usage are read by GET", () => {
    expect(route("POST", "/v1/messages/count_tokens")).toMatchObject({ kind: "count" });
    expect(route("GET", "/v1/models")).toMatchObject({ kind: "models" });
    expect(route("GET", "/v1/models/meta%2Fllama")).toMatchObject({ model: "meta/llama" });
    expect(route("GET", "/v1/responses/resp_1?include=a")).toEqual({
      kind: "response",
      id: "resp_1",
      path: "/responses/resp_1?include=a",
    });
    expect(route("GET", "/openai/v1/models")).toMatchObject({ kind: "models" });
    expect(route("GET", "/openai/responses/resp_1?api-version=1")).toEqual({
      kind: "response",
      id: "resp_1",
      path: "/openai/responses/resp_1?api-version=1",
    });
    expect(route("DELETE", "/v1/responses/resp_1")).toBe(404);
    expect(route("DELETE", "/v1/models/ft:a")).toBe(405);
    expect(route("GET", "/v1/usage")).toMatchObject({ kind: "usage" });
    expect(route("POST", "/v1/usage")).toBe(405);
    expect(route("GET", "/v1/usage/x")).toBe(404);
  });
});

describe("requests that are refused", () => {
  test.each([
    "/v1/files",
    "/v1/files/file-1/content",
    "/v1/batches",
    "/v1/messages/batches",
    "/v1/responses/compact",
    "/v1/responses/resp_1/cancel",
    "/v1/images/generations",
    "/api/chat",
    "/v1beta/models/gemini:generateContent",
    "/v1/Chat/Completions",
    "/v1/chat//completions",
    "/v1/chat/completions;a=1",
    "/v1/chat/completions%2F",
    "/v1/chat/completion%73",
    "/v1/x/../chat/completions",
    "/v1/x/%2e%2E/chat/completions",
    "/",
    "//",
  ])("POST %s is a 404", (url) => {
    expect(route("POST", url)).toBe(404);
  });

  test("other methods by a header, upgrades and odd targets are a 400", () => {
    const url = "/v1/chat/completions";
    expect(route("POST", url, { "x-http-method-override": "DELETE" })).toBe(400);
    expect(route("POST", url, { "x-method-override": "DELETE" })).toBe(400);
    expect(route("POST", url, { "x-http-method": "PUT" })).toBe(400);
    expect(route("GET", url, { upgrade: "websocket" })).toBe(400);
    expect(route("POST", "*")).toBe(400);
    expect(route("POST", `${url}?a=\\b`)).toBe(400);
  });
});

describe("paths that the operator has opened", () => {
  const allowed = ["/v1/files", "/api/"].map((path) => readAllowedPath(path));

  test.each([
    ["GET", "/v1/files", "/files"],
    ["DELETE", "/files/file-1", "/files/file-1"],
    ["POST", "/api/chat?a=1", "/api/chat?a=1"],
  ])("%s %s is forwarded as %s", (method, url, path) => {
    expect(route(method, url, {}, allowed)).toEqual({ kind: "allowed", path });
  });

  test.each([
    ["GET", "/v1/filesystem"],
    ["TRACE", "/v1/files"],
    ["GET", "/v1/files/../batches"],
    ["GET", "/v1/files/%2e%2e/batches"],
    ["GET", "/v1/files//a"],
    ["GET", "/v1/files;a"],
  ])("%s %s is not", (method, url) => {
    expect(route(method, url, {}, allowed)).toBe(404);
  });

  test("a prefix is a path without escapes, and /v1 opens everything", () => {
    expect(() => readAllowedPath("v1/files")).toThrow("expected a path like /v1/audio");
    expect(() => readAllowedPath("/v1/../files")).toThrow("expected a path like /v1/audio");
    expect(() => readAllowedPath("/a%20b")).toThrow("expected a path like /v1/audio");
    const all = [readAllowedPath("/v1")];
    expect(route("GET", "/v1/files", {}, all)).toEqual({ kind: "allowed", path: "/files" });
    expect(route("PUT", "/v1/chat/completions", {}, all)).toBe(405);
  });
});
