import { expect, it } from "vitest";
import { defined } from "../../../src/domain/defined.ts";

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
