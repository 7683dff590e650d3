/** Work that goes on after the call that began it has been answered. */

export class BackgroundWork {
  readonly #running = new Set<Promise<unknown>>();

  /** Keeps work, which never rejects, until it has ended. */
  add(work: Promise<unknown>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** Resolves when no work is left, also none that other work has begun. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
