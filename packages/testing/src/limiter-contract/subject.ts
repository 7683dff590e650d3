/** The subject of a test of the limiter: clients of one store, in a new namespace. */

import type { RateLimiterOptions } from "@zae-limiter/limiter/acquire/limiter-options.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { type Cases, casesOf, type Each, each, type TestRunner } from "../test-runner.ts";
import { VirtualTime } from "../time/virtual-time.ts";
import { timed } from "./timed.ts";

/** The store may share the machine with other tests, so deadlines prove nothing here. */
const TIMEOUT_MS = 20_000;

/** A store that was opened for the suite, to which any number of clients connect. */
export interface OpenedLimiterStore {
  /**
   * Opens another client of the store. Clients share what is stored and nothing else; the suite
   * closes each, which must leave the others open. The namespace may be new.
   */
  open(options: OpenOptions & { readonly namespace: string }): Promise<Repository>;
  /** Closes the store and removes what it held. */
  close(): Promise<void>;
}

/** Properties of a store that the suite needs before the store is open. */
export interface LimiterContractOptions {
  /**
   * Why the store is too slow for all tests: those of the numbered rules in the list of behaviour
   * run, the others are skipped.
   */
  readonly slow?: string | undefined;
  /**
   * Whether calls take real time, as those over a network do. Tests then make fewer of them, and
   * those that need thousands, or days of virtual time, are skipped.
   */
  readonly remote?: boolean;
  /** Whether leases can hold slots on the store; their tests are skipped where they cannot. */
  readonly slots?: boolean;
  /**
   * Whether usage is counted by an aggregator, from the changes of the store, and none runs here:
   * `usage-peaks.test.ts` of the room `aws` runs the cases with one.
   */
  readonly aggregated?: boolean;
}

/** How a limiter under test is opened. */
export interface SubjectOptions extends OpenOptions, RateLimiterOptions {
  /** The clock of another subject; one of its own when absent. */
  readonly time?: VirtualTime;
  /** Waiting and deadlines are virtual too. */
  readonly virtualTimer?: boolean;
}

/** A limiter under test. */
export interface Subject {
  readonly limiter: RateLimiter;
  readonly repo: Repository;
  readonly time: VirtualTime;
}

/** How tests are declared: `extra` is for those that a slow store skips. */
export interface LimiterCases extends Cases {
  readonly extra: (title: string, run: () => Promise<void>) => unknown;
  readonly extraEach: Each<Promise<void>>;
}

/** Opens a limiter under test with the function that connects to the store. */
export async function openSubject(
  connect: OpenedLimiterStore["open"],
  options: SubjectOptions,
): Promise<Subject> {
  // The real time: a store may delete items whose time to live is in the past.
  const { time = new VirtualTime(systemClock()), virtualTimer, ...rest } = options;
  const { speculativeWrites, missingLimits, totals, events, onWarning, ...open } = rest;
  const repo = await connect({
    timeoutMs: TIMEOUT_MS,
    clock: time.clock,
    ...(virtualTimer === true ? { timer: time.timer } : {}),
    ...open,
    namespace: options.namespace ?? `t-${crypto.randomUUID()}`,
  });
  const seen = virtualTimer === true ? timed(repo, time) : repo;
  const own = defined({ speculativeWrites, missingLimits, totals, events, onWarning });
  return { limiter: new RateLimiter(seen, own), repo, time };
}

/** The suite creates it before the store is open, so the store is looked up when a test runs. */
export class StoreUnderTest {
  readonly cases: LimiterCases;
  readonly remote: boolean;
  readonly slots: boolean;
  readonly aggregated: boolean;
  /** Why tests beyond the numbered cases are skipped. */
  readonly slow: string | undefined;
  readonly #clients: Repository[] = [];
  #opened: OpenedLimiterStore | undefined;

  constructor(runner: TestRunner, options: LimiterContractOptions) {
    const { slow, remote = false, slots = false, aggregated = false } = options;
    this.slots = slots;
    this.aggregated = aggregated;
    this.slow = slow;
    this.remote = remote;
    const test = Object.assign(
      (title: string, run: () => Promise<void>) => runner.test(title, () => this.#closing(run)),
      { skip: runner.test.skip },
    );
    const { describe, expect, beforeAll, afterAll } = runner;
    const cases = casesOf({ describe, test, expect, beforeAll, afterAll });
    const extra = cases.testUnless(slow);
    this.cases = { ...cases, extra, extraEach: each((title, run) => extra(title, run)) };
  }

  opened(opened: OpenedLimiterStore): void {
    this.#opened = opened;
  }

  /** Returns all variants of a case; on a slow store the first two. */
  variants<T>(all: readonly T[]): readonly T[] {
    return this.slow === undefined ? all : all.slice(0, 2);
  }

  /** Opens a limiter in a new or the given namespace; it is closed after the test. */
  async open(options: SubjectOptions = {}): Promise<Subject> {
    const store = this.#opened;
    if (store === undefined) throw new Error("The store is not open yet");
    const subject = await openSubject((own) => store.open(own), options);
    this.#clients.push(subject.repo);
    return subject;
  }

  /** Opens another client of the same namespace, at the same time. */
  another(subject: Subject, options: SubjectOptions = {}): Promise<Subject> {
    return this.open({ time: subject.time, namespace: subject.repo.namespaceName, ...options });
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }

  async #closing(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } finally {
      for (const client of this.#clients.splice(0)) await client.close();
    }
  }
}
