import { routes } from "@zae-limiter/gateway/routes.ts";
import { expect, test } from "vitest";

test.each([
  "/v1/chat/completions;a=1",
  "/v1/chat/completions;a=%2Fx",
  "/v1/chat;a=1/completions",
  "/v1/chat/completions%3Ba=1",
  "/v1/chat/completions%2F",
  "/v1/chat/completions%252F",
  "/v1/chat%2Fcompletions",
  "/v1/chat/completions%5C",
  "/v1/chat/completions%20",
  "/v1/chat/completions%00",
  "/v1/chat/completions%3Fa=1",
  "/v1/chat/completions%23",
  "/v1/chat/completions/x/..%2F",
  "/v1/chat/completions/.;a",
  "/v1/messages;a=1",
])("the path %s is ambiguous, since a server may read it as another API", (path) => {
  expect(routes.of(path)?.isAmbiguous).toBe(true);
});

test.each([
  "/v1/chat/completions",
  "/v1/chat/completions/",
  "/V1/Chat//Completions?a=;b%2F",
  "/v1;a=1/chat/completions",
  "/v1/models/meta-llama%2FLlama-3",
  "/v1/files/a%20b;c",
  "/v1/files/%zz%ff",
  "/openai/deployments/my%20model/chat/completions",
])("the path %s is not ambiguous", (path) => {
  expect(routes.of(path)?.isAmbiguous).toBe(false);
});
