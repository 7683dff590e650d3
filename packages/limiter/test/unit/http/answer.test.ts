import { disabledAnswer, replacedAnswer } from "@zae-limiter/limiter/http/answer.ts";
import { expect, test } from "vitest";

test("a header of an answer that is replaced is sent once, however it is written", () => {
  const answer = { ...disabledAnswer(), headers: [{ name: "retry-after", value: "1" }] };
  const { headers } = replacedAnswer(answer, { headers: { "Retry-After": "9" } });
  expect(headers).toEqual([{ name: "Retry-After", value: "9" }]);
});
