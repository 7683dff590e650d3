import { modelOf } from "@zae-limiter/gateway/models/model-list-request.ts";
import { ModelsAnswer } from "@zae-limiter/gateway/models/models-answer.ts";
import { expect, test } from "vitest";

test.each([
  ["seconds", 1_700_000_000, "2023-11-14T22:13:20.000Z"],
  ["microseconds", 1_700_000_000_000_000, "1970-01-01T00:00:00.000Z"],
  ["a negative number", -1, "1970-01-01T00:00:00.000Z"],
])("a model that an upstream dates in %s has a time that can be written", (_, created, time) => {
  const model = modelOf({ id: "llama", created });
  const answer = new ModelsAnswer(model === undefined ? [] : [model], async () => undefined);
  expect(answer.list("anthropic")).toMatchObject({ data: [{ id: "llama", created_at: time }] });
});
