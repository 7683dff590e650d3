/** Processes that share slots on a server, and processes that are killed or stopped. */

import { Repository } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { expect, it } from "vitest";
import { seatTests } from "../slots/seats.ts";
import { Child } from "../sqlite/child.ts";

const TAKE = new URL("./take-slots.mjs", import.meta.url);
/** The expiry of those that end: a busy machine may keep others from renewing theirs for long. */
const EXPIRY_SECONDS = 2;
/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };

const build = builtSources();

/** `addressOf` returns a place that no other test uses, without a namespace. */
export function slotProcessTests(addressOf: () => string): void {
  async function open(namespace: string, slots: number) {
    const place = `${addressOf()}&namespace=${namespace}`;
    const repo = await Repository.open(place, { timeoutMs: 20_000 });
    await repo.limits.setSystem([`parallel:${slots} concurrent`]);
    const free = async () => (await repo.buckets.list("hot"))[0]?.tokens;
    const start = (expirySeconds = 600) =>
      new Child(TAKE, [build.index, place, String(expirySeconds)]);
    return { repo, free, start };
  }

  const place = () => `${addressOf()}&namespace=seats`;
  // `npm run soak:slots` makes ten thousand calls, and disturbs them.
  seatTests(place, { calls: 400, expirySeconds: 600 });

  it("slots of processes that are killed or cut off come back, and once", LONG, async () => {
    const { repo, free, start } = await open("ended", 4);
    const [killed, stopped] = [start(EXPIRY_SECONDS), start(EXPIRY_SECONDS)];
    for (const child of [killed, stopped]) {
      await child.answer();
      child.go();
      expect(await child.answer()).toBe("held");
    }
    expect(await free()).toBe(0);
    await killed.kill();
    stopped.signal("SIGSTOP");
    // These wait until both are over.
    const next = [start(), start()];
    for (const child of next) {
      await child.answer();
      child.go();
    }
    for (const child of next) expect(await child.answer()).toBe("held");
    stopped.goOn();
    // What it gives back now is that of a holder that is dead.
    stopped.go();
    expect(await stopped.answer()).toBe("ended");
    await stopped.ended();
    expect(stopped.complaints).toContain("ZAEL_SLOTS_LOST");
    expect(await free()).toBe(0);
    for (const child of next) {
      child.go();
      expect(await child.answer()).toBe("ended");
    }
    expect(await free()).toBe(4);
    await repo.close();
  });
}
