/** Pictures that replace each other on a terminal. */

import { clipped, Drawing } from "@zae-limiter/cli/terminal/drawing.ts";
import { PLAIN } from "@zae-limiter/cli/terminal/palette.ts";
import type { Terminal } from "@zae-limiter/cli/terminal/terminal.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { describe, expect, test } from "vitest";

const UP = (lines: number) => `\u001b[${lines}A\u001b[J`;

function drawn(size: { columns: number; rows?: number; isTerminal?: boolean }, pictures: string[]) {
  let out = "";
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: () => undefined,
    palette: PLAIN,
    errPalette: PLAIN,
    isTerminal: true,
    errIsTerminal: true,
    env: {},
    ask: async () => undefined,
    onInterruption: () => () => undefined,
    timer: systemTimer,
    ...size,
  };
  const drawing = new Drawing(terminal);
  for (const picture of pictures) drawing.draw(picture);
  drawing.leave();
  return out;
}

describe("a drawing", () => {
  test("a drawing moves back by the lines that it has drawn, and hides the cursor until its end", () => {
    expect(drawn({ columns: 80 }, ["a\nb\n", "c\n", "d\n"])).toBe(
      `\u001b[?25la\nb\n${UP(2)}c\n${UP(1)}d\n\u001b[?25h`,
    );
  });

  test("a drawing never wraps, and never leaves the screen", () => {
    expect(drawn({ columns: 3, rows: 3 }, ["12345\n12\n1\n0\n", "x\n"])).toBe(
      `\u001b[?25l123\n12\n${UP(2)}x\n\u001b[?25h`,
    );
  });

  test("a drawing is text below each other without a terminal", () => {
    expect(drawn({ columns: 3, rows: 2, isTerminal: false }, ["12345\n6\n", "7\n"])).toBe(
      "12345\n6\n7\n",
    );
  });

  test("a drawing that never began leaves nothing", () => {
    expect(drawn({ columns: 80 }, [])).toBe("");
  });
});

test.each([
  ["plain", 10, "plain"],
  ["plain", 3, "pla"],
  ["\u001b[32mgreen\u001b[39m dull", 7, "\u001b[32mgreen\u001b[39m d"],
  ["\u001b[32mgreen\u001b[39m dull", 2, "\u001b[32mgr\u001b[39m"],
  ["█████", 2, "██"],
  ["anything", 0, ""],
])("%j in %d columns is %j", (line, columns, expected) => {
  expect(clipped(line, columns)).toBe(expected);
});
