/**
 * The open model: tasks arrive on a schedule, whether or not the ones before them have ended. The
 * latency of an acquire counts from the time its task should have started, so a store that stops
 * for a second shows in every arrival of that second.
 */

import { GRACE_MS, type LoadChange, type Model, type Workplace } from "./model.ts";

/** Below this wait the process yields instead of sleeping: timers may be late by as much. */
const TURN_MS = 1;
/** Tasks at work in one worker. Further arrivals start late, and their latency says so. */
const AT_WORK_MAX = 10_000;
/** The pause between two checks of the rate while it is zero, in milliseconds. */
const IDLE_MS = 100;

export class Arrivals implements Model {
  readonly #workplace: Workplace;
  readonly #atWork = new Set<Promise<void>>();
  #rate: number;
  #users: number;
  /** The time at which the schedule of the present rate begins. */
  #baseMs: number;
  /** Arrivals of all workers since then; this worker starts its share of them. */
  #sinceBase: number;
  /** Numbers the arrivals of this worker, so that users come in turn. */
  #arrived = 0;

  constructor(workplace: Workplace) {
    const { plan, place } = workplace.job;
    this.#workplace = workplace;
    this.#rate = plan.rate ?? 0;
    this.#users = Math.max(1, plan.users);
    // A worker that replaces another one does not repeat the arrivals of that one.
    this.#baseMs = workplace.startedMs + place.doneMs;
    this.#sinceBase = place.worker;
  }

  get busy(): number {
    return this.#atWork.size;
  }

  get pending(): readonly Promise<unknown>[] {
    return [...this.#atWork];
  }

  change({ rate, users }: LoadChange): void {
    if (users !== undefined) this.#users = Math.max(1, users);
    if (rate === undefined) return;
    this.#rate = rate;
    this.#baseMs = this.#workplace.job.timer.nowMs();
    this.#sinceBase = this.#workplace.job.place.worker;
  }

  /** Starts every arrival that is due before the end, also late, unless the run is ended early. */
  async run(): Promise<void> {
    const { job, ended, breathe, startedMs, unstarted } = this.#workplace;
    const { timer, turn, plan, signal } = job;
    const endMs = startedMs + plan.durationMs;
    while (!signal.aborted) {
      const dueMs = this.#dueMs;
      if (dueMs >= endMs) return;
      const leftMs = dueMs - timer.nowMs();
      if (leftMs > TURN_MS) await timer.sleep(Math.min(leftMs - TURN_MS, IDLE_MS), ended);
      else if (leftMs > 0) await turn();
      else if (this.#atWork.size < AT_WORK_MAX) {
        this.#arrive(dueMs);
        await breathe();
      } else if (timer.nowMs() < endMs + GRACE_MS) {
        await Promise.race([...this.#atWork, timer.sleep(IDLE_MS)]);
      } else unstarted(this.#nextUser());
    }
  }

  get #dueMs(): number {
    if (this.#rate <= 0) return this.#workplace.job.timer.nowMs() + IDLE_MS;
    return this.#baseMs + (this.#sinceBase * 1000) / this.#rate;
  }

  #arrive(dueMs: number): void {
    const { job, perform, late } = this.#workplace;
    late(job.timer.nowMs() - dueMs);
    const work = perform(this.#nextUser(), dueMs);
    this.#atWork.add(work);
    void work.finally(() => this.#atWork.delete(work));
  }

  #nextUser(): number {
    const { worker, workers } = this.#workplace.job.place;
    const user = (worker + this.#arrived * workers) % this.#users;
    this.#sinceBase += workers;
    this.#arrived += 1;
    return user;
  }
}
