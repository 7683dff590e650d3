// Removes the build output, so that a renamed source file leaves no stale module in the package.
import { rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
