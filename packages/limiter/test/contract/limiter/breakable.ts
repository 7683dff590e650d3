/** Stores that a test can break and repair: by a server in between, or by locking their file. */

import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect } from "vitest";
import { type Failure, Faults } from "./faults.ts";
import type { LimiterStore, Subject, SubjectOptions } from "./limiter-stores.ts";

/**
 * The time limit of calls that are made to fail. Long enough for a call that goes well on a busy
 * machine: sockets know no virtual time.
 */
export const IMPATIENT = { timeoutMs: 1000 };
/** A busy machine notices a deadline late; the reference takes 26 to 51 seconds. */
export const SLACK_MS = 1500;

/** A limiter on a store that can be broken and repaired. */
export interface Breakable extends AsyncDisposable {
  readonly subject: Subject;
  fail(): Promise<void>;
  repair(): Promise<void>;
}

export async function breakable(
  store: LimiterStore,
  failure: Failure,
  options: SubjectOptions = {},
): Promise<Breakable> {
  if (store.name === "sqlite") return lockable(store, options);
  const faults = new Faults();
  const subject = await store.open({ ...IMPATIENT, ...options, faults });
  return {
    subject,
    fail: async () => {
      faults.rule = () => failure;
    },
    repair: async () => {
      faults.rule = () => undefined;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function lockable(store: LimiterStore, options: SubjectOptions): Promise<Breakable> {
  const subject = await store.open({ ...IMPATIENT, ...options });
  const { database } = await openSqlite({ path: store.place.address });
  return {
    subject,
    fail: async () => void database.prepare("BEGIN IMMEDIATE").run(),
    repair: async () => void database.prepare("ROLLBACK").run(),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

/** Returns the error of a call, which must fail in the time it is given. */
export async function unavailable(call: () => Promise<unknown>): Promise<RateLimiterUnavailable> {
  const startedAt = performance.now();
  const error = await failureOf(call());
  expect(performance.now() - startedAt).toBeLessThan(IMPATIENT.timeoutMs + SLACK_MS);
  if (!(error instanceof RateLimiterUnavailable)) throw error;
  return error;
}
