/** Charts: the texts at the axes, and how columns use the width. */

import { chart, fitted } from "@zae-limiter/cli/terminal/chart.ts";
import { describe, expect, test } from "vitest";

const AXIS = { first: "10:00", last: "13:00" };

describe("chart", () => {
  test("small amounts have their numbers at the axis, and times below it", () => {
    expect(chart([1, 4, 0, 2], AXIS, 40).split("\n")).toEqual([
      "4 ┤        ███████",
      "  │        ███████",
      "  │        ███████",
      "  │        ███████",
      "2 ┤        ███████         ███████",
      "  │        ███████         ███████",
      "  │███████ ███████         ███████",
      "  │███████ ███████         ███████",
      "0 ┼────────────────────────────────",
      "   10:00                      13:00",
    ]);
  });

  test.each([1, 3, 9, 10, 73, 1234])("a largest amount of %i is named, and zero too", (top) => {
    const lines = chart([0, top], AXIS, 60).split("\n");
    expect(lines[0]?.trimStart()).toMatch(new RegExp(`^${top.toLocaleString("en-US")} ┤`));
    expect(lines[8]?.trimStart()).toMatch(/^0 ┼─/);
  });

  test("one window is one column, and not a line across the terminal", () => {
    const lines = chart([5], { first: "10:00", last: "10:00" }, 100).split("\n");
    expect(lines[0]).toBe("5 ┤███████");
    expect(lines.at(-1)).toBe("   10:00");
  });

  test("many windows use the whole width, and no line is wider", () => {
    for (const columns of [28, 60, 80, 120, 200]) {
      for (const count of [3, 24, 100, 1000]) {
        const amounts = Array.from({ length: count }, (_, at) => (at * 7919) % 1000);
        const lines = chart(amounts, { first: "01-01 10:00", last: "01-31 13:00" }, columns);
        const widest = Math.max(...lines.split("\n").map((line) => line.length));
        expect(widest).toBeLessThanOrEqual(columns);
        if (count >= columns) expect(widest).toBeGreaterThan(columns - 3);
      }
    }
  });

  test("something is never drawn as nothing, and nothing never as something", () => {
    const [, , , , , , , lowest = ""] = chart([1, 0, 1_000_000], AXIS, 40).split("\n");
    expect(lowest.slice(-23)).toBe("▁▁▁▁▁▁▁         ███████");
  });

  test("amounts below zero hang below the axis", () => {
    const lines = chart([6, -2], AXIS, 30).split("\n");
    expect(lines.map((line) => line.slice(0, 4).trim())).toEqual([
      "6 ┤",
      "│",
      "│",
      "3 ┤",
      "│",
      "│",
      "0 ┼",
      "│",
      "-2 ┤",
      "",
    ]);
    expect(lines[8]).toMatch(/^-2 ┤ {8}█{7}$/);
  });
});

test.each([
  [[1, 2, 3, 4], 2, [1.5, 3.5]],
  [[1, 2], 4, [1, 2]],
  [[1, 2, 3], 3, [1, 2, 3]],
])("%j in %j columns is %j", (series, width, expected) => {
  expect(fitted(series, width)).toEqual(expected);
});
