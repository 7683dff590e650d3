/** The declarations of a scenario. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { Decision } from "@zae-limiter/limiter/acquire/decision.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

/** The argument of `setup` and `teardown`. Nothing they do is recorded. */
export interface LoadContext {
  /** A limiter on the store under test. */
  readonly limiter: RateLimiter;
  /** The repository of that limiter. */
  readonly repository: Repository;
}

/** The argument of a task: the limiter, with every acquire recorded, and its user's identity. */
export interface LoadSession {
  /** Unique among the users of all workers, the same in all its tasks; a valid entity id. */
  readonly userId: string;
  /** The name of the class in `users`. */
  readonly userClass: string;
  /** The number of the worker, from 0. */
  readonly worker: number;
  /** The limiter itself. Its calls are not recorded. */
  readonly limiter: RateLimiter;
  /** Numbers in [0, 1). */
  readonly random: Random;
  /** Aborts when the run ends. */
  readonly signal: AbortSignal;
  /** Waits; ends early when the run ends. */
  sleep(ms: number): Promise<void>;
  /** Consumes, or throws `RateLimitExceeded`. An open lease is committed after the task. */
  acquire(request: AcquireRequest): Promise<Lease>;
  /** Consumes, or returns why it was refused. */
  tryAcquire(request: AcquireRequest): Promise<Decision>;
  /** Consumes, runs the work, and ends the lease like `RateLimiter.run`. */
  run<T>(request: AcquireRequest, work: (lease: Lease) => T | Promise<T>): Promise<T>;
}

/** Milliseconds between two tasks of a user: a number, a range to draw from, or a function. */
export type Wait = number | readonly [min: number, max: number] | ((random: Random) => number);

/** A class of users. */
export interface LoadUser {
  /** How many of all users are of this class, compared with the other classes. Default 1. */
  readonly weight?: number;
  /** Default 0. An open model (`--rate`) does not wait: arrivals have their own schedule. */
  readonly wait?: Wait;
  /** Prepares one user, such as its entity. Not recorded. */
  readonly start?: (session: LoadSession) => unknown;
  /** The work that a user repeats. */
  readonly task: (session: LoadSession) => unknown;
}

/** A scenario: the default export of its file. */
export interface Load {
  /** Runs once, before the first worker begins. */
  readonly setup?: (context: LoadContext) => unknown;
  /** The classes of users by name. */
  readonly users: Readonly<Record<string, LoadUser>>;
  /** Runs once, after the last worker has ended. */
  readonly teardown?: (context: LoadContext) => unknown;
}
