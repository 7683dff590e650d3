/** Processes that share buckets on a server, with clocks that differ, and killed processes. */

import { Repository } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { expect, it } from "vitest";
import { Child } from "../sqlite/child.ts";
import { race } from "../sqlite/race.ts";

const CHAINS = new URL("./chains.mjs", import.meta.url);
const SPEND = new URL("./spend.mjs", import.meta.url);
const PROCESSES = 6;
const DURATION_MS = 1500;
const AT_ONCE = 16;
const POLL = { timeout: 20_000 };
/** Several processes that start, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };
/** The time is asked for again after about a minute, and an answer that takes longer is dropped. */
const ASKED_AGAIN_MS = 50_000;
const ASKED_WITHIN_MS = 1000;
const CAPACITY = { small: 40, large: 20_000 };
const PER_SECOND = { small: 7, large: 9001 };

/** Report of a child. */
interface Taken {
  readonly consumed: Readonly<Record<string, number>>;
  readonly granted: number;
  readonly refused: number;
  readonly ended: number;
  readonly failed: readonly string[];
  readonly openedInMs: number;
}

export interface SharedStore {
  /** The address of a place that no other test uses, without a namespace. */
  readonly address: string;
  /** Whether the server reads its own clock; else each process asks for it when it opens. */
  readonly readsClock: boolean;
  /** Returns how often the server has found a deadlock. */
  readonly deadlocks?: () => Promise<number>;
}

const build = builtSources();

/**
 * Returns the most that two processes may differ in what they take for the server's time. The
 * answer came while they opened the store: each is wrong by half of that at most.
 */
function apartAt(answers: readonly Taken[], elapsedMs: number): number {
  const longestMs = Math.max(...answers.map(({ openedInMs }) => openedInMs));
  return elapsedMs < ASKED_AGAIN_MS ? longestMs : Math.max(longestMs, ASKED_WITHIN_MS);
}

export function processTests(storeOf: () => SharedStore): void {
  it(
    "six processes with clocks hours apart take chains in every order, and no token is lost or made",
    LONG,
    async () => {
      const { address, readsClock, deadlocks = async () => 0 } = storeOf();
      const place = `${address}&namespace=chains`;
      const repo = await Repository.open(place);
      await repo.limits.setSystem([
        `small:${PER_SECOND.small}/sec:${CAPACITY.small}`,
        `large:${PER_SECOND.large}/sec:${CAPACITY.large}`,
      ]);
      const before = await deadlocks();
      const children = Array.from(
        { length: PROCESSES },
        (_, at) => new Child(CHAINS, [build.index, place, String(DURATION_MS), String(at + 1)]),
      );
      const startedMs = performance.now();
      const answers = (await race(children)) as Taken[];
      const elapsedMs = performance.now() - startedMs;
      const apartMs = readsClock ? 0 : apartAt(answers, elapsedMs);
      expect(answers.flatMap(({ failed }) => failed)).toEqual([]);
      expect(await deadlocks()).toBe(before);
      const states = (await Promise.all(["a", "b", "c"].map((id) => repo.buckets.list(id)))).flat();
      expect(states).toHaveLength(6);
      for (const { entityId, limitName, totalConsumed } of states) {
        const key = `${entityId} ${limitName}`;
        const taken = answers.reduce((sum, { consumed }) => sum + (consumed[key] ?? 0), 0);
        expect(totalConsumed, key).toBe(taken);
        const name = limitName as keyof typeof CAPACITY;
        const most = CAPACITY[name] + (PER_SECOND[name] * (elapsedMs + apartMs)) / 1000;
        expect(totalConsumed, key).toBeLessThanOrEqual(most);
      }
      await repo.close();
    },
  );

  it("processes that are killed lose no token, and make none", LONG, async () => {
    const place = `${storeOf().address}&namespace=killed`;
    const repo = await Repository.open(place);
    await repo.limits.setSystem(["large:1000000/day"]);
    const children = Array.from(
      { length: 3 },
      () => new Child(SPEND, [build.index, place, String(AT_ONCE)]),
    );
    for (const child of children) await child.answer();
    for (const child of children) child.go();
    const said = await Promise.all(
      children.map(async (child, at) => {
        let tokens = 0;
        while (tokens < 300 * (at + 1)) tokens += (await child.answer()) as number;
        await child.kill();
        for await (const line of child.lines) tokens += Number(line);
        return tokens;
      }),
    );
    const acknowledged = said.reduce((total, tokens) => total + tokens, 0);
    // The server may still be about the last request of a process that has ended.
    const consumed = async () => (await repo.buckets.list("hot"))[0]?.totalConsumed ?? 0;
    await expect.poll(consumed, POLL).toBeGreaterThanOrEqual(acknowledged);
    expect(await consumed()).toBeLessThanOrEqual(acknowledged + children.length * AT_ONCE);
    await repo.close();
  });
}
