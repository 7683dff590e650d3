import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { referencePage } from "./reference.ts";

const PAGE = fileURLToPath(new URL("../../../../docs/reference/cli.md", import.meta.url));

test("docs/reference/cli.md is what the commands say; `vitest run -u` on this file writes it", async () => {
  await expect(await referencePage()).toMatchFileSnapshot(PAGE);
});
