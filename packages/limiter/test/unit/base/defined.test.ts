import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { expect, it } from "vitest";

it("every value but undefined is kept, in the order of the fields", () => {
  const fields = defined({
    id: "a",
    none: undefined,
    zero: 0,
    empty: "",
    no: false,
    nothing: null,
  });
  expect(Object.entries(fields)).toEqual([
    ["id", "a"],
    ["zero", 0],
    ["empty", ""],
    ["no", false],
    ["nothing", null],
  ]);
});
