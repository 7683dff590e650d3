/**
 * How long this process may keep the write lock almost to itself.
 *
 * SQLite has no queue of waiting processes: one that asks while the lock is free gets it. A busy
 * loop frees it for microseconds between two transactions, so a process that asks again every
 * millisecond would hardly ever hit such a moment. After a turn the loop therefore leaves a gap.
 * Time held counts up and time free counts down several times as fast: a process that leaves the
 * lock free often enough by itself never has to stop.
 *
 * A turn is long while no other process writes, so that gaps cost a lone process little. Once
 * another process was met turns are short, and a gap lasts until another process has used it; each
 * unused gap makes the next turn twice as long.
 */

const TURN_MS_MIN = 5;
const TURN_MS_MAX = 40;
/** Enough for a process that has waited for a whole long turn, and then asks every millisecond. */
const GAP_MS = 2;
/** Enough even for a process that is slow to wake up. */
const SHARED_GAP_MS = 6;
/** A lock that is free a fifth of the time is found free soon enough. */
const FREE_WEIGHT = 4;

export class Turn {
  #turnMs = TURN_MS_MAX;
  #heldMs = 0;
  #endedAt = 0;

  isOver(now: number): boolean {
    return this.#heldMs - FREE_WEIGHT * (now - this.#endedAt) >= this.#turnMs;
  }

  /** How long to wait, at most, for others to use the lock. */
  get gapMs(): number {
    return this.#turnMs < TURN_MS_MAX ? SHARED_GAP_MS : GAP_MS;
  }

  /** Adds a time during which the lock was held. */
  add(startedAt: number, endedAt: number): void {
    const before = Math.max(0, this.#heldMs - FREE_WEIGHT * (startedAt - this.#endedAt));
    this.#heldMs = before + endedAt - startedAt;
    this.#endedAt = endedAt;
  }

  /** Records that another process has, or had, the lock. */
  meet(): void {
    this.#turnMs = TURN_MS_MIN;
  }

  /** Records the end of a gap. */
  restart(wasUsed: boolean): void {
    this.#heldMs = 0;
    if (wasUsed) this.meet();
    else this.#turnMs = Math.min(TURN_MS_MAX, this.#turnMs * 2);
  }
}
