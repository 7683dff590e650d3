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
  /** Absent where nothing waits for longer than a turn. */
  readonly deadline: Deadline | undefined;
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
      const { atOnce } = this.#options;
      const deadline = atOnce === undefined ? undefined : new Deadline(systemTimer, timeoutMs);
      this.#waiting.push({ asked, timeoutMs, deadline, resolve, reject });
      if (atOnce === undefined) {
        // Runs after the callbacks of promises that are settled by now: they may ask, too.
        if (this.#waiting.length === 1) process.nextTick(() => this.#flush());
      } else if (this.#underWay < atOnce) void this.#run();
    });
  }

  /** Sends all that was asked in this turn. */
  #flush(): void {
    const { max, joins = () => true } = this.#options;
    const waiting = this.#waiting;
    this.#waiting = [];
    const open: Waiter<Asked, Answer>[][] = [];
    for (const one of waiting) {
      let at = open.findIndex(([first]) => first !== undefined && joins(one.asked, first.asked));
      if (at < 0) at = open.push([]) - 1;
      const batch = open[at] as Waiter<Asked, Answer>[];
      batch.push(one);
      if (batch.length < max) continue;
      open.splice(at, 1);
      void this.#send(batch);
    }
    for (const batch of open) void this.#send(batch);
  }

  /** Sends the requests that wait, until none does. */
  async #run(): Promise<void> {
    this.#underWay += 1;
    while (this.#waiting.length > 0) {
      await this.#send(this.#next().filter((each) => this.#isDue(each)));
    }
    this.#underWay -= 1;
  }

  /** Takes those that may go with the first one. */
  #next(): readonly Waiter<Asked, Answer>[] {
    const { max, joins } = this.#options;
    const [first] = this.#waiting;
    if (joins === undefined || first === undefined) return this.#waiting.splice(0, max);
    const isNext = ({ asked }: Waiter<Asked, Answer>) => joins(asked, first.asked);
    const batch = this.#waiting.filter(isNext).slice(0, max);
    this.#waiting = this.#waiting.filter((each) => !batch.includes(each));
    return batch;
  }

  #isDue({ deadline, timeoutMs, reject }: Waiter<Asked, Answer>): boolean {
    if (deadline?.isOver !== true) return true;
    reject(this.#options.late(timeoutMs));
    return false;
  }

  async #send(batch: readonly Waiter<Asked, Answer>[]): Promise<void> {
    if (batch.length === 0) return;
    const timeoutMs = Math.max(...batch.map(leftMs));
    try {
      const answers = await this.#options.send(
        batch.map(({ asked }) => asked),
        { timeoutMs: Math.max(1, timeoutMs) },
      );
      for (const [at, { resolve }] of batch.entries()) resolve(answers[at] as Answer);
    } catch (error) {
      const isOfOne = batch.length > 1 && !(error instanceof RateLimiterUnavailable);
      // One that the server refuses must not end the others, which were undone with it.
      if (isOfOne) await Promise.all(batch.map((each) => this.#send([each])));
      else for (const { reject } of batch) reject(error);
    }
  }
}

function leftMs({ deadline, timeoutMs }: Pick<Waiter<never, never>, "deadline" | "timeoutMs">) {
  return deadline === undefined ? timeoutMs : Math.ceil(deadline.timeoutMs);
}
