/** Hostile bytes on raw sockets: each costs little, breaks nothing, and delays no valid call. */

import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { test } from "vitest";
import { expectHarmless } from "../fuzzed/harmless.ts";

test("hostile requests cost little, leave nothing behind, and valid calls get answers", async () => {
  await expectHarmless(casesOf(10_000), 20_261_118);
});
