/** Work that would only get in its own way, done one piece after the other. */

export class OneByOne {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Starts when all earlier work under the same name is done, however it ended. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const mine = before === undefined ? work() : before.then(work, work);
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}
