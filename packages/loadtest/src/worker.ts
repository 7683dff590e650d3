/** Runs the part of one worker in this process. */

import { setMaxListeners } from "node:events";
import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { Arrivals } from "./arrivals.ts";
import { Crowd } from "./crowd.ts";
import type { LoadUser } from "./load.ts";
import { GRACE_MS, type LoadChange, type Model, type WorkerJob, type Workplace } from "./model.ts";
import { classPicker } from "./plan.ts";
import { Session, type SessionHost } from "./session.ts";
import { Slice } from "./slice.ts";

/** How long users may keep the process from all other work. */
const TURN_MS = 5;

/** One run; its load may be changed meanwhile. */
export class Worker {
  readonly #job: WorkerJob;
  readonly #model: Model;
  readonly #ended = new AbortController();
  readonly #startedMs: number;
  /** The results of `start`, by user. */
  readonly #preparations = new Map<number, unknown>();
  /** Sessions whose task has not ended. */
  readonly #atWork = new Set<Session>();
  #slice: Slice;
  #cpuMs: number;
  #turnedMs: number;

  constructor(job: WorkerJob) {
    this.#job = job;
    const { plan, place, timer, signal } = job;
    this.#startedMs = timer.nowMs() - place.doneMs;
    this.#slice = new Slice(Math.floor(place.doneMs / plan.intervalMs));
    this.#cpuMs = job.cpuMs?.() ?? 0;
    this.#turnedMs = timer.nowMs();
    // Many tasks may wait for the end at the same time.
    setMaxListeners(0, this.#ended.signal);
    const end = () => this.#ended.abort(signal.reason);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
    const workplace = this.#workplace();
    this.#model = plan.rate === undefined ? new Crowd(workplace) : new Arrivals(workplace);
  }

  change(change: LoadChange): void {
    this.#model.change(change);
  }

  async run(): Promise<void> {
    const { limiter, timer, plan } = this.#job;
    const leave = limiter.repository[INTERNALS].listen((call) => this.#slice.called(call));
    const over = new AbortController();
    const ticking = this.#tick(over.signal);
    const leftMs = this.#startedMs + plan.durationMs - timer.nowMs();
    const ending = timer.sleep(leftMs, this.#ended.signal).then(() => this.#ended.abort());
    try {
      await this.#model.run();
      await ending;
      await this.#settle();
    } finally {
      leave();
      over.abort();
      await ticking;
      this.#flush();
    }
  }

  /** Waits for the tasks at work; refunds the leases of those that do not end. */
  async #settle(): Promise<void> {
    const { timer } = this.#job;
    const late = new AbortController();
    const all = Promise.all(this.#model.pending).then(() => late.abort());
    await Promise.race([all, timer.sleep(GRACE_MS, late.signal)]);
    if (late.signal.aborted) return;
    await Promise.all([...this.#atWork].map((session) => session.abandon()));
  }

  /** Reports each interval when it is over. The last one waits for the tasks at work. */
  async #tick(over: AbortSignal): Promise<void> {
    const { timer, plan } = this.#job;
    while (!over.aborted && this.#slice.interval < this.#lastInterval) {
      const endMs = this.#startedMs + (this.#slice.interval + 1) * plan.intervalMs;
      await timer.sleep(Math.max(0, endMs - timer.nowMs()), over);
      if (timer.nowMs() >= endMs) this.#flush();
    }
  }

  get #lastInterval(): number {
    const { durationMs, intervalMs } = this.#job.plan;
    return Math.ceil(durationMs / intervalMs) - 1;
  }

  #flush(): void {
    const { onSlice, timer, plan } = this.#job;
    const done = this.#slice;
    const cpuMs = this.#job.cpuMs?.() ?? 0;
    done.users = this.#model.busy;
    done.cpuMs = cpuMs - this.#cpuMs;
    this.#cpuMs = cpuMs;
    const interval = Math.floor((timer.nowMs() - this.#startedMs) / plan.intervalMs);
    this.#slice = new Slice(Math.min(this.#lastInterval, Math.max(interval, done.interval)));
    onSlice(done);
  }

  #workplace(): Workplace {
    const { load, limiter, timer, random, place, plan } = this.#job;
    const pick = classPicker(load, plan.classes);
    const host: SessionHost = {
      limiter,
      timer,
      random,
      signal: this.#ended.signal,
      worker: place.worker,
      slice: () => this.#slice,
    };
    return {
      job: this.#job,
      startedMs: this.#startedMs,
      ended: this.#ended.signal,
      perform: (user, intendedMs) => {
        const userClass = pick(user);
        return this.#perform(
          user,
          new Session(host, userClass, `${userClass}-${user}`, intendedMs),
        );
      },
      breathe: () => this.#breathe(),
      late: (ms) => {
        if (ms > this.#slice.lateMsMax) this.#slice.lateMsMax = ms;
      },
      unstarted: (user) => {
        const tally = this.#slice.tally(pick(user));
        tally.brokenTasks += 1;
        tally.fail("the task never started: too many others had not ended");
      },
    };
  }

  async #perform(user: number, session: Session): Promise<void> {
    const { task, start } = this.#job.load.users[session.userClass] as LoadUser;
    this.#atWork.add(session);
    try {
      if (start !== undefined) await this.#prepared(user, session, start);
      await session.perform(task);
    } catch (error) {
      session.broken(error);
    } finally {
      this.#atWork.delete(session);
    }
  }

  /** Prepares each user once, also where its tasks overlap. */
  #prepared(user: number, session: Session, start: NonNullable<LoadUser["start"]>): unknown {
    return entryOf(this.#preparations, user, async () => start(session));
  }

  #breathe(): Promise<void> | undefined {
    const { timer, turn } = this.#job;
    if (timer.nowMs() - this.#turnedMs < TURN_MS) return undefined;
    return turn().then(() => {
      this.#turnedMs = timer.nowMs();
    });
  }
}
