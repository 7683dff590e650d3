/** Processes that share slots on a server, and processes that are killed or stopped. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Repository } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { expect, it } from "vitest";
import { Child } from "../sqlite/child.ts";

const TAKE = new URL("./take-slots.mjs", import.meta.url);
const PROCESSES = 8;
const SLOTS = 20;
/** The expiry of those that end: a busy machine may keep others from renewing theirs for long. */
const EXPIRY_SECONDS = 2;
/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };

const build = builtSources();
const folder = temporaryFolder();

/** `addressOf` returns a place that no other test uses, without a namespace. */
export function slotProcessTests(addressOf: () => string): void {
  async function open(namespace: string, slots: number) {
    const place = `${addressOf()}&namespace=${namespace}`;
    const file = join(folder, namespace);
    const repo = await Repository.open(place, { timeoutMs: 20_000 });
    await repo.limits.setSystem([`parallel:${slots} concurrent`]);
    const free = async () => (await repo.buckets.list("hot"))[0]?.tokens;
    const start = (calls: number, expirySeconds = 600) =>
      new Child(TAKE, [build.index, place, String(calls), String(expirySeconds), file]);
    return { repo, free, start, said: () => readFileSync(file, "utf8") };
  }

  it(`eight processes never hold more than ${SLOTS} slots together`, LONG, async () => {
    const { repo, free, start, said } = await open("shared", SLOTS);
    const calls = Math.ceil((NIGHTLY_ONLY ? 400 : 10_000) / PROCESSES);
    const children = Array.from({ length: PROCESSES }, () => start(calls));
    for (const child of children) await child.answer();
    for (const child of children) child.go();
    for (const child of children) expect(await child.answer()).toBe("ended");
    expect(children.map(({ complaints }) => complaints).join("")).toBe("");
    let [held, most] = [0, 0];
    for (const word of said()) {
      held += word === "+" ? 1 : -1;
      most = Math.max(most, held);
    }
    expect(said()).toHaveLength(2 * calls * PROCESSES);
    expect(most).toBeLessThanOrEqual(SLOTS);
    expect(await free()).toBe(SLOTS);
    await repo.close();
  });

  it("slots of processes that are killed or cut off come back, and once", LONG, async () => {
    const { repo, free, start } = await open("ended", 4);
    const [killed, stopped] = [start(0, EXPIRY_SECONDS), start(0, EXPIRY_SECONDS)];
    for (const child of [killed, stopped]) {
      await child.answer();
      child.go();
      expect(await child.answer()).toBe("held");
    }
    expect(await free()).toBe(0);
    await killed.kill();
    stopped.signal("SIGSTOP");
    // These wait until both are over.
    const next = [start(0), start(0)];
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
