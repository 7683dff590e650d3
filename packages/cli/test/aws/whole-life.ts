/**
 * A stack from its first day to its last, by the command as it is shipped: on moto in `npm test`,
 * and on a real account in `npm run test:aws-account`.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Ran } from "@zae-limiter/test-support/binary.ts";
import { expect } from "vitest";

export interface Account {
  /** The stack and table, which must not exist. */
  readonly name: string;
  readonly region: string;
  /** The address of an emulator; absent on AWS. */
  readonly endpoint?: string;
  /** An empty folder. */
  readonly folder: string;
  /** The module of the package. */
  readonly index: string;
  /** Whether Lambda functions run, so that usage is counted. */
  readonly runsLambdas: boolean;
  run(...args: string[]): Promise<Ran>;
}

const CALLS = 20;
/** The stream is read every five seconds; a new function takes a while to begin. */
const USAGE_TIMEOUT_MS = 180_000;
const POLL_MS = 5_000;

/** Deploys, uses, upgrades and deletes a stack; deletes it also when something failed. */
export async function wholeLife(account: Account): Promise<void> {
  const { name, run } = account;
  const ok = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await run(...args, "-n", name);
    expect({ args, code, err: code === 0 ? "" : err }).toEqual({ args, code: 0, err: "" });
    return out;
  };
  try {
    await ok("deploy", "--yes");
    expect(JSON.parse(await ok("status", "--json"))).toMatchObject({ table_status: "ACTIVE" });
    const file = join(account.folder, "limits.yaml");
    writeFileSync(file, "namespace: default\nsystem: { limits: { rph: { capacity: 1000 } } }\n");
    await ok("limits", "apply", "-f", file);
    await ok("limits", "diff", "-f", file);
    await ok("entity", "create", "org");
    await ok("entity", "create", "key-1", "--parent", "org", "--cascade");
    await useIt(account);
    if (account.runsLambdas) await usageArrives(ok);
    expect(await ok("upgrade", "--yes")).toContain("up to date");
    expect(JSON.parse(await ok("audit", "list", "--json"))).toHaveProperty("events");
  } finally {
    await ok("delete", "--with-data", "--yes");
  }
  const left = await run("status", "-n", name);
  expect(left.code).not.toBe(0);
}

async function useIt({ index, name, region, endpoint }: Account): Promise<void> {
  const { RateLimiter } = (await import(
    /* @vite-ignore */ index
  )) as typeof import("../../../../src/index.ts");
  const limiter = await RateLimiter.open(`dynamodb://${name}?region=${region}`, {
    ...(endpoint === undefined ? {} : { endpoint }),
  });
  try {
    const call = { entityId: "key-1", resource: "gpt-4", consume: { rph: 1 } };
    for (let at = 1; at < CALLS; at += 1) await limiter.run(call, async () => undefined);
    const lease = await limiter.acquire(call);
    const ofParent = lease.statuses.filter(({ entityId }) => entityId === "org");
    expect(ofParent.map(({ available }) => available < 1000)).toEqual([true]);
    await lease.commit();
  } finally {
    await limiter.close();
  }
}

async function usageArrives(ok: (...args: string[]) => Promise<string>): Promise<void> {
  const deadline = Date.now() + USAGE_TIMEOUT_MS;
  for (;;) {
    const summary = await ok("usage", "summary", "-e", "key-1", "-w", "hourly", "--json");
    const { total } = JSON.parse(summary) as { total: { rph?: number } };
    if (total.rph === CALLS) return;
    expect(Date.now(), `usage is ${summary}`).toBeLessThan(deadline);
    await pause(POLL_MS);
  }
}
