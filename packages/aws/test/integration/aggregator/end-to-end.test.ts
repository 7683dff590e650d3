/**
 * Acquires, adjustments and rollbacks on DynamoDB Local while the aggregator is killed and started
 * again: in the end the snapshots say exactly what the buckets say. `ZAEL_SOAK` makes it longer.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { Binary } from "@zae-limiter/test-support/binary.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";

const SOAK = process.env.ZAEL_SOAK !== undefined;
const ACQUIRES = SOAK ? 10_000 : 500;
const ENTITIES = 50;
const KILLS = 5;
const CLIENTS = 8;
/** Longer than a batch takes, when it is multiplied: so it is killed in every part of one. */
const KILL_STEP_MS = 250;
const TIMEOUT_MS = 20_000;
const RESOURCE = "gpt-4";
/** Some have names that attributes have, too. */
const LIMITS = ["rpm:1000000", "tpm:100000000", "ttl:1000000", "PK:1000000", "window:1000000"];

const entityOf = (number: number) => `key-${number % ENTITIES}`;

/** Takes something, and one way or the other settles what it took. */
async function useOnce(limiter: RateLimiter, number: number): Promise<void> {
  const lease = await limiter.acquire({
    entityId: entityOf(number),
    resource: RESOURCE,
    consume: { rpm: 1, tpm: 100 + (number % 37), ttl: 2, PK: 3, window: 1 + (number % 2) },
  });
  // Every entity does everything in turn.
  const turn = (number + Math.floor(number / ENTITIES)) % 5;
  if (turn === 0) return lease.rollback();
  if (turn === 1) lease.adjust({ tpm: 50, PK: 1 });
  if (turn === 2) lease.adjust({ tpm: -60, ttl: -1 });
  return lease.commit();
}

/** Acquires `count` times, several at a time; returns the number to continue with. */
async function useMany(limiter: RateLimiter, from: number, count: number): Promise<number> {
  let next = from;
  const client = async () => {
    while (next < from + count) await useOnce(limiter, next++);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return from + count;
}

/** The aggregator as a process, which can be killed like any other. */
class KillableAggregator {
  readonly #binary: Binary;
  readonly #url: string;
  #child: ChildProcess;
  #batches = 0;
  #onBatch: () => void = () => undefined;

  constructor(binary: Binary, url: string) {
    this.#binary = binary;
    this.#url = url;
    this.#child = this.#start();
  }

  /** Kills it when it is at work: some time after it has counted something. */
  async killAndRestart(afterMs: number): Promise<void> {
    if (this.#batches === 0) {
      await new Promise<void>((resolve) => {
        this.#onBatch = resolve;
      });
    }
    await pause(afterMs);
    this.#child.kill("SIGKILL");
    await once(this.#child, "close");
    this.#child = this.#start();
  }

  async stop(): Promise<number | null> {
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    this.#child.kill("SIGTERM");
    await once(this.#child, "close");
    return this.#child.exitCode;
  }

  #start(): ChildProcess {
    this.#batches = 0;
    const args = ["aggregate", "--url", this.#url, "--lease-seconds", "1", "--batch-seconds"];
    const child = this.#binary.start([...args, "1", "--log-level", "debug"]);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (child !== this.#child || !text.includes("batch processed")) return;
      this.#batches += 1;
      this.#onBatch();
    });
    child.stderr?.pipe(process.stderr);
    return child;
  }
}

/** Returns the consumption of every limit by every entity, by the buckets. */
async function consumed(repo: Repository): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (let number = 0; number < ENTITIES; number += 1) {
    for (const { limitName, totalConsumed } of await repo.buckets.list(entityOf(number))) {
      const name = `${entityOf(number)} ${limitName}`;
      sums[name] = (sums[name] ?? 0) + totalConsumed;
    }
  }
  return sums;
}

/** Returns the consumption of every limit by every entity, by the snapshots of one window type. */
async function counted(
  repo: Repository,
  window: (typeof WINDOW_TYPES)[number],
): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (let number = 0; number < ENTITIES; number += 1) {
    const entityId = entityOf(number);
    const { total } = await repo.usage.summary({ entityId, resource: RESOURCE, window });
    for (const [limitName, tokens] of Object.entries(total))
      sums[`${entityId} ${limitName}`] = tokens;
  }
  return sums;
}

/** Acquires of every entity, by the snapshots of one window type. */
async function events(repo: Repository, window: (typeof WINDOW_TYPES)[number]): Promise<number> {
  let sum = 0;
  for (let number = 0; number < ENTITIES; number += 1) {
    const options = { entityId: entityOf(number), resource: RESOURCE, window };
    const { snapshots } = await repo.usage.snapshots(options);
    sum += snapshots.reduce((all, { totalEvents }) => all + totalEvents, 0);
  }
  return sum;
}

const total = (sums: Readonly<Record<string, number>>) =>
  Object.values(sums).reduce((sum, amount) => sum + amount, 0);

describeEngine("dynamodb-local", "an aggregator that is killed five times", ({ endpoint }) => {
  itUnless(SOAK ? undefined : NIGHTLY_ONLY)(
    `an aggregator that is killed five times counts ${ACQUIRES} acquires exactly`,
    {
      timeout: SOAK ? 600_000 : 180_000,
    },
    async () => {
      const table = newName();
      const repo = await Repository.createTable(table, { endpoint, timeoutMs: TIMEOUT_MS });
      await repo.limits.setSystem(LIMITS);
      const limiter = new RateLimiter(repo);
      const binary = new Binary();
      const aggregator = new KillableAggregator(binary, `dynamodb://${table}?endpoint=${endpoint}`);
      try {
        const perPhase = Math.ceil(ACQUIRES / (KILLS + 1) / 2);
        let next = 0;
        for (let kills = 0; kills < KILLS; kills += 1) {
          next = await useMany(limiter, next, perPhase);
          // What was used just now is not counted yet, so it is at work.
          const killed = aggregator.killAndRestart(kills * KILL_STEP_MS);
          next = await useMany(limiter, next, perPhase);
          await killed;
        }
        await useMany(limiter, next, ACQUIRES - next);
        const truth = await consumed(repo);
        expect(Object.keys(truth)).toHaveLength(ENTITIES * LIMITS.length);
        // It lags behind; how long it takes to catch up depends on the machine.
        let months = await counted(repo, "monthly");
        while (total(months) !== total(truth)) {
          await pause(250);
          months = await counted(repo, "monthly");
        }
        expect(await aggregator.stop()).toBe(0);
        for (const window of WINDOW_TYPES) {
          expect(await counted(repo, window)).toEqual(truth);
          expect(await events(repo, window)).toBe(ACQUIRES);
        }
      } finally {
        await aggregator.stop();
        await repo.close();
        await deleteTable({ table, endpoint });
      }
    },
  );
});
