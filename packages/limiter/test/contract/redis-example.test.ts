/** The example for Redis runs as users run it. */

import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { expect, it, vi } from "vitest";

const EXAMPLE = new URL("../../../../examples/redis/index.js", import.meta.url).href;

describeRedis("the example", (url) => {
  it("the example for Redis shares a limit between two machines", async () => {
    const { prefix } = ownPrefix(url);
    const log = vi.spyOn(console, "log").mockReturnValue();
    vi.stubEnv("REDIS_URL", url);
    vi.stubEnv("LIMITER_PREFIX", prefix);
    const { granted } = (await import(/* @vite-ignore */ EXAMPLE)) as { granted: boolean[] };
    vi.unstubAllEnvs();
    log.mockRestore();
    expect(granted).toEqual([true, true, true, false, false, false]);
    await removeKeys(url, prefix);
  });
});
