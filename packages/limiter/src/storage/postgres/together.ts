/**
 * Requests that go together once enough of them are under way: each alone would cost the server a
 * statement and a transaction of its own, and the process a connection.
 */

import { Deadline, systemTimer } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { TableCallOptions } from "../item-table.ts";

export interface TogetherOptions<Asked, Answer> {
  /** Requests under way from which on others wait and go together. */
  readonly atOnce: number;
  /** The most that go together. */
  readonly max: number;
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
      if (this.#underWay < this.#options.atOnce) void this.#run();
    });
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
