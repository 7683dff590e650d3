/** Processes that share buckets on Redis, with clocks that differ, and killed processes. */

import { Repository } from "@zae-limiter/limiter/index.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { removeKeys } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll, expect, it } from "vitest";
import { Child } from "../sqlite/child.ts";
import { race } from "../sqlite/race.ts";

const CHAINS = new URL("./skewed-chains.mjs", import.meta.url);
const SPEND = new URL("../postgres/spend.mjs", import.meta.url);
const PROCESSES = 6;
const DURATION_MS = 1500;
const AT_ONCE = 16;
const CAPACITY = { small: 40, large: 20_000 };
const PER_SECOND = { small: 7, large: 9001 };
/** The most that two processes may take the time of the server for, on a busy machine. */
const APART_MS = 500;

/** Report of a child. */
interface Taken {
  readonly consumed: Readonly<Record<string, number>>;
  readonly granted: number;
  readonly refused: number;
  readonly ended: number;
  readonly failed: readonly string[];
  readonly startedAt: number;
  readonly endedAt: number;
}

const build = builtSources();

describeRedis("processes", (url) => {
  const { prefix, url: address } = ownPrefix(url);
  afterAll(() => removeKeys(url, prefix));

  it("six processes with clocks a second apart take chains, and no token is lost or made", async () => {
    const place = `${address}&namespace=chains`;
    const repo = await Repository.open(place);
    await repo.limits.setSystem([
      `small:${PER_SECOND.small}/sec:${CAPACITY.small}`,
      `large:${PER_SECOND.large}/sec:${CAPACITY.large}`,
    ]);
    const children = Array.from(
      { length: PROCESSES },
      (_, at) => new Child(CHAINS, [build.index, place, String(DURATION_MS), String(at + 1)]),
    );
    const answers = (await race(children)) as Taken[];
    expect(answers.flatMap(({ failed }) => failed)).toEqual([]);
    const sum = (of: (answer: Taken) => number) =>
      answers.reduce((total, each) => total + of(each), 0);
    for (const of of ["granted", "refused", "ended"] as const) {
      expect(
        sum((answer) => answer[of]),
        of,
      ).toBeGreaterThan(PROCESSES);
    }
    const elapsedMs = Math.max(...answers.map((each) => each.endedAt - each.startedAt)) + APART_MS;
    const states = (await Promise.all(["a", "b", "c"].map((id) => repo.buckets.list(id)))).flat();
    expect(states).toHaveLength(6);
    for (const { entityId, limitName, totalConsumed } of states) {
      const key = `${entityId} ${limitName}`;
      expect(totalConsumed, key).toBe(sum(({ consumed }) => consumed[key] ?? 0));
      const name = limitName as keyof typeof CAPACITY;
      const most = CAPACITY[name] + (PER_SECOND[name] * elapsedMs) / 1000;
      expect(totalConsumed, key).toBeLessThanOrEqual(most);
    }
    await repo.close();
  });

  it("processes that are killed lose no token, and make none", async () => {
    const place = `${address}&namespace=killed`;
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
    const consumed = (await repo.buckets.list("hot"))[0]?.totalConsumed ?? 0;
    expect(consumed).toBeGreaterThanOrEqual(acknowledged);
    expect(consumed).toBeLessThanOrEqual(acknowledged + children.length * AT_ONCE);
    await repo.close();
  });
});
