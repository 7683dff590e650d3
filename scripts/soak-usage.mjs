/** Usage from end to end with 10,000 acquires, while the aggregator is killed again and again. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const test = "packages/aws/test/integration/aggregator/end-to-end.test.ts";
const { status } = spawnSync(process.execPath, [vitest, "run", "--project", "integration", test], {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
  env: { ...process.env, ZAEL_SOAK: "1" },
  stdio: "inherit",
});
process.exitCode = status ?? 1;
