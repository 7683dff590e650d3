/**
 * Requests that go together once enough of them are under way: each alone would cost the server a
 * statement and a transaction of its own, and the process a connection.
 */

import { Deadline, systemTimer } from "../base/time.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import type { TableCallOptions } from "./item-table.ts";

export interface TogetherOptions<Asked, Answer> {
  /**
   * Requests under way from which on others wait and go together. Absent: what is asked in one turn
   * of the event loop goes together at its end, and nothing waits for longer.
   */
  readonly atOnce?: number;
  /** The most that go together. */
  readonly max: number;
  /** Whether one may go together with the first of a request; all may when absent. */
  readonly joins?: (one: Asked, first: Asked) => boolean;
  /** Sends some as one request; answers are in their order. */
  readonly send: (asked: readonly Asked[], options: TableCallOptions) => Promise<readonly Answer[]>;
  /** Returns the error of one whose time was over before it was sent. */
  readonly late: (timeoutMs: number) => Error;
}

/** One that waits to be sent. */
interface Waiter<Asked, Answer> {
  readonly asked: Asked;
  readonly timeoutMs: number;
  readonly deadline: Deadline;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export class Together<Asked, Answer> {
  readonly #options: TogetherOptions<Asked, Answer>;
  #waiting: Waiter<Asked, Answer>[] = [];
  #underWay = 0;

  constructor(options: TogetherOptions<Asked, Answer>) {
    this.#options = options;
  }

  /** Sends at once while few are under way, and with all others that wait as soon as one ends. */
  ask(asked: Asked, { timeoutMs }: TableCallOptions): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const deadline = new Deadline(systemTimer, timeoutMs);
      this.#waiting.push({ asked, timeoutMs, deadline, resolve, reject });
      const { atOnce } = this.#options;
      if (atOnce === undefined) {
        // Runs after what waits for promises that are settled by now, and asks perhaps.
        if (this.#waiting.length === 1) process.nextTick(() => this.#flush());
      } else if (this.#underWay < atOnce) void this.#run();
    });
  }

  /** Sends all that was asked in this turn. */
  #flush(): void {
    const { max, joins = () => true } = this.#options;
    let left = this.#waiting;
    this.#waiting = [];
    for (let first = left[0]; first !== undefined; first = left[0]) {
      const batch: Waiter<Asked, Answer>[] = [];
      const others: Waiter<Asked, Answer>[] = [];
      for (const one of left) {
        (batch.length < max && joins(one.asked, first.asked) ? batch : others).push(one);
      }
      void this.#send(batch);
      left = others;
    }
  }

  /** Sends what waits until nothing does. */
  async #run(): Promise<void> {
    this.#underWay += 1;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#options.max);
      await this.#send(batch.filter((each) => this.#isDue(each)));
    }
    this.#underWay -= 1;
  }

  #isDue({ deadline, timeoutMs, reject }: Waiter<Asked, Answer>): boolean {
    if (!deadline.isOver) return true;
    reject(this.#options.late(timeoutMs));
    return false;
  }

  async #send(batch: readonly Waiter<Asked, Answer>[]): Promise<void> {
    if (batch.length === 0) return;
    const timeoutMs = Math.max(...batch.map(({ deadline }) => Math.ceil(deadline.timeoutMs)));
    try {
      const answers = await this.#options.send(
        batch.map(({ asked }) => asked),
        { timeoutMs: Math.max(1, timeoutMs) },
      );
      for (const [at, { resolve }] of batch.entries()) resolve(answers[at] as Answer);
    } catch (error) {
      const isOfOne = batch.length > 1 && !(error instanceof RateLimiterUnavailable);
      // What the server refuses of one must not end the others, which were undone with it.
      if (isOfOne) await Promise.all(batch.map((each) => this.#send([each])));
      else for (const { reject } of batch) reject(error);
    }
  }
}
