/** Control characters from elsewhere have no effect on a terminal. */

import { COLOURED } from "@zae-limiter/cli/terminal/palette.ts";
import type { Terminal } from "@zae-limiter/cli/terminal/terminal.ts";
import { guarded, visible } from "@zae-limiter/cli/terminal/visible.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { expect, test } from "vitest";
import { temporaryStore } from "../temporary.ts";

const store = temporaryStore();
/** The title of the window, the clipboard, a cleared screen, a colour, and the form of 8 bits. */
const HOSTILE = "\u001b]0;title\u0007\u001b]52;c;eA==\u0007\u001b[2J\u001b[31mred\u009b2J\r\nnext";
const SHOWN =
  "\\u001b]0;title\\u0007\\u001b]52;c;eA==\\u0007\\u001b[2J\\u001b[31mred\\u009b2J\\u000d\\u000anext";

test("names and principals are shown with what is in them, by every command that lists them", async () => {
  const { name, under } = store.namespace();
  const repo = await Repository.open(store.url, { namespace: name });
  await repo.entities.create({ id: "key-1", name: HOSTILE, principal: `arn:${HOSTILE}` });
  await repo.close();
  for (const command of [
    ["entity", "show", "key-1"],
    ["audit", "list", "-e", "key-1"],
  ]) {
    const { code, out } = await under({ isTerminal: true }, ...command);
    expect(code).toBe(0);
    expect(out).toContain(SHOWN);
    // What is left are headings of ours.
    const sequences = out.split("\u001b").slice(1);
    expect(sequences.filter((text) => !/^\[(1|2|22)m/.test(text))).toEqual([]);
  }
});

test("an error repeats no control character", async () => {
  const { under } = store.namespace();
  const { err } = await under({ isTerminal: true }, "entity", "show", "a\u001b[2J\u009b");
  for (const sequence of ["\u001b[2J", "\u009b"]) expect(err).not.toContain(sequence);
});

test("whatever a command prints, only colours of ours and moves of ours have an effect", () => {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const terminal = guarded({ out: write, err: write } as unknown as Terminal);
  terminal.out(`${COLOURED.bad("red")}\t${HOSTILE}\n`);
  terminal.err("\r\u001b[K");
  terminal.out("\u001b[6A\u001b[J");
  expect(written).toEqual([
    `\u001b[31mred\u001b[39m\t${SHOWN.replace("\\u001b[31m", "\u001b[31m").replace("\\u000a", "\n")}\n`,
    "\r\u001b[K",
    "\u001b[6A\u001b[J",
  ]);
  expect(visible("plain äöü 🎉")).toBe("plain äöü 🎉");
});

test("the size of the terminal stays that of the moment", () => {
  let columns = 80;
  const raw = {
    out: () => undefined,
    get columns() {
      return columns;
    },
  } as unknown as Terminal;
  const terminal = guarded(raw);
  columns = 120;
  expect(terminal.columns).toBe(120);
});

test("characters that turn the direction of a text around are shown and not obeyed", () => {
  expect(visible("key\u202e1\u2066\u200f")).toBe("key\\u202e1\\u2066\\u200f");
});
