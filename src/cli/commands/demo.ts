/** `demo`: limits at work in a temporary store. */

import { leaf } from "../command.ts";
import { runDemo } from "../demo/demo.ts";
import { EXIT } from "../exit-codes.ts";

export const demo = leaf({
  name: "demo",
  summary: "limits at work in a temporary store",
  json: { lines: ["text"] },
  run: async ({ terminal, json }) => {
    if (!json) {
      await runDemo(terminal);
      return { code: EXIT.ok };
    }
    let told = "";
    const tell = (text: string) => {
      told += text;
    };
    await runDemo({ ...terminal, out: tell });
    return { json: () => ({ lines: told.trimEnd().split("\n") }), text: () => told };
  },
});
