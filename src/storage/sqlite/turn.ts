/**
 * How long this process may keep the write lock almost to itself.
 *
 * SQLite has no queue of waiting processes: whoever asks while the lock is free gets it. A busy
 * loop frees it for microseconds between two transactions, so a process that asks again every
 * millisecond would hardly ever hit such a moment. After a turn the loop therefore leaves a gap
 * that nobody who waits can miss. Time held counts up and time free counts down several times as
 * fast: a process that leaves the lock free often enough by itself never has to stop.
 */

const TURN_MS = 40;
/** The turn once other processes were met: they get theirs sooner. */
const SHARED_TURN_MS = 5;
/** How long a meeting is remembered. */
const COMPANY_MS = 1000;
/** A lock that is free a fifth of the time is found free soon enough. */
const FREE_WEIGHT = 4;

/** Longer than the pauses of a process that has waited for a while. */
export const GAP_MS = 2;

export class Turn {
  #heldMs = 0;
  #endedAt = 0;
  #companyAt = Number.NEGATIVE_INFINITY;

  isOver(now: number): boolean {
    const length = now - this.#companyAt < COMPANY_MS ? SHARED_TURN_MS : TURN_MS;
    return this.#heldMs - FREE_WEIGHT * (now - this.#endedAt) >= length;
  }

  /** The lock was held. */
  add(startedAt: number, endedAt: number): void {
    const before = Math.max(0, this.#heldMs - FREE_WEIGHT * (startedAt - this.#endedAt));
    this.#heldMs = before + endedAt - startedAt;
    this.#endedAt = endedAt;
  }

  /** Another process had the lock. */
  meet(now: number): void {
    this.#companyAt = now;
  }

  restart(): void {
    this.#heldMs = 0;
  }
}
