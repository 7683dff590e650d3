/** The example of a store: it runs as users run it. */

import { expect, test, vi } from "vitest";

const EXAMPLE = new URL("../../../../examples/own-store/index.js", import.meta.url).href;

test("the example of an own store limits a key and its project", async () => {
  const log = vi.spyOn(console, "log").mockReturnValue();
  await import(/* @vite-ignore */ EXAMPLE);
  expect(log.mock.calls).toEqual([["The project has 99 requests and 880 tokens left today"]]);
  log.mockRestore();
});
