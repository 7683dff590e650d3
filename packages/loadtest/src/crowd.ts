/**
 * The closed model: a number of users, each of which begins its next task when the last one has
 * ended. A store that is slow gets fewer calls, so its worst seconds are underrepresented.
 */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Wait } from "./load.ts";
import type { LoadChange, Model, Workplace } from "./model.ts";
import { classPicker } from "./plan.ts";

/** Longer than a run may be, and short enough for a timer. */
const FOREVER_MS = 2 ** 31 - 1;

export class Crowd implements Model {
  readonly #workplace: Workplace;
  readonly #users = new Map<
    number,
    { readonly leave: AbortController; readonly life: Promise<void> }
  >();
  readonly #classOf: (user: number) => string;
  #target: number;
  /** Ends the wait for the next user when the target is changed. */
  #changed = new AbortController();

  constructor(workplace: Workplace) {
    const { load, plan } = workplace.job;
    this.#workplace = workplace;
    this.#target = plan.users;
    this.#classOf = classPicker(load, plan.classes);
  }

  get busy(): number {
    return this.#users.size;
  }

  get pending(): readonly Promise<unknown>[] {
    return [...this.#users.values()].map(({ life }) => life);
  }

  change({ users }: LoadChange): void {
    if (users === undefined) return;
    this.#target = users;
    for (const [user, { leave }] of this.#users) if (user >= users) leave.abort();
    this.#changed.abort();
  }

  /** Starts users at the spawn rate. With several workers, each starts its share. */
  async run(): Promise<void> {
    const { job, ended, startedMs } = this.#workplace;
    const { timer, plan, place } = job;
    const spacingMs = 1000 / plan.spawnRate;
    let dueMs = startedMs + place.worker * spacingMs;
    while (!ended.aborted) {
      const user = this.#missing();
      if (user === undefined) {
        await this.#unchanged(FOREVER_MS);
        dueMs = Math.max(dueMs, timer.nowMs());
      } else if (dueMs > timer.nowMs()) {
        await this.#unchanged(dueMs - timer.nowMs());
      } else {
        this.#spawn(user);
        dueMs += place.workers * spacingMs;
        await this.#workplace.breathe();
      }
    }
    for (const { leave } of this.#users.values()) leave.abort();
  }

  /** Returns the first user of this worker that is not at work and should be. */
  #missing(): number | undefined {
    const { worker, workers } = this.#workplace.job.place;
    for (let user = worker; user < this.#target; user += workers) {
      if (!this.#users.has(user)) return user;
    }
    return undefined;
  }

  /** Waits, until the target changes or the run ends. */
  async #unchanged(ms: number): Promise<void> {
    const { job, ended } = this.#workplace;
    if (this.#changed.signal.aborted) this.#changed = new AbortController();
    await job.timer.sleep(ms, AbortSignal.any([this.#changed.signal, ended]));
  }

  #spawn(user: number): void {
    const leave = new AbortController();
    const life = this.#live(user, leave.signal).finally(() => {
      if (this.#users.get(user)?.leave === leave) this.#users.delete(user);
    });
    this.#users.set(user, { leave, life });
  }

  async #live(user: number, leave: AbortSignal): Promise<void> {
    const { job, perform, breathe } = this.#workplace;
    const { load, random, timer } = job;
    const wait = load.users[this.#classOf(user)]?.wait ?? 0;
    while (!leave.aborted) {
      await perform(user);
      const waitMs = waitMsOf(wait, random);
      if (waitMs > 0) await timer.sleep(waitMs, leave);
      else await breathe();
    }
  }
}

function waitMsOf(wait: Wait, random: Random): number {
  if (typeof wait === "number") return wait;
  if (typeof wait === "function") return wait(random);
  return wait[0] + random() * (wait[1] - wait[0]);
}
