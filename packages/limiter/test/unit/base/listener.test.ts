/** Listeners that fail change nothing, and are spoken of once. */

import { setImmediate as tick } from "node:timers/promises";
import { unbreakable } from "@zae-limiter/limiter/base/listener.ts";
import { expect, test } from "vitest";

test.each([
  [
    "throws",
    () => {
      throw new Error("of the listener");
    },
  ],
  [
    "is asynchronous and throws",
    async () => {
      throw new Error("of the listener");
    },
  ],
])("a listener that %s is a warning, once", async (_, listener) => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  const tell = unbreakable("events", listener as (heard: string) => void);
  for (const heard of ["a", "b", "c"]) tell(heard);
  await tick();
  process.off("warning", warn);
  expect(warnings).toEqual([expect.objectContaining({ code: "ZAEL_LISTENER_FAILED" })]);
});

test("a listener that does not throw gets every call", () => {
  const heard: string[] = [];
  const tell = unbreakable("events", (text: string) => void heard.push(text));
  for (const text of ["a", "b"]) tell(text);
  expect(heard).toEqual(["a", "b"]);
});
