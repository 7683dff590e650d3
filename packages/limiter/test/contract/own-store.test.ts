/** The example of a store runs as users run it, and so do its tests, which are the contracts. */

import { expect, test, vi } from "vitest";

const EXAMPLE = new URL("../../../../examples/own-store/", import.meta.url);

await import(/* @vite-ignore */ new URL("map-table.test.js", EXAMPLE).href);

test("the example of an own store limits a key and its project", async () => {
  const log = vi.spyOn(console, "log").mockReturnValue();
  await import(/* @vite-ignore */ new URL("index.js", EXAMPLE).href);
  expect(log.mock.calls).toEqual([["The project has 99 requests and 880 tokens left today"]]);
  log.mockRestore();
});
