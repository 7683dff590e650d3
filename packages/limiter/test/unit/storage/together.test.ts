import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Together } from "@zae-limiter/limiter/storage/together.ts";
import { expect, test } from "vitest";

const SOON = { timeoutMs: 5000 };

/** Requests that end when a test says so. */
class Sent {
  readonly requests: (readonly number[])[] = [];
  readonly #ends: ((error?: Error) => void)[] = [];
  readonly together: Together<number, string>;

  constructor(joins?: (one: number, first: number) => boolean) {
    this.together = new Together<number, string>({
      atOnce: 2,
      max: 3,
      ...(joins === undefined ? {} : { joins }),
      send: async (asked) => {
        this.requests.push(asked);
        await new Promise<void>((resolve, reject) => {
          this.#ends.push((error) => (error === undefined ? resolve() : reject(error)));
        });
        return asked.map((number) => `answer ${number}`);
      },
      late: (timeoutMs) => new Error(`late after ${timeoutMs} ms`),
    });
  }

  /** Ends the oldest request. */
  end(error?: Error): void {
    this.#ends.shift()?.(error);
  }
}

const outcomesOf = async (calls: readonly Promise<string>[]) =>
  (await Promise.allSettled(calls)).map((one) =>
    one.status === "fulfilled" ? one.value : (one.reason as Error).message,
  );

test("few requests go at once, and what arrives meanwhile goes together when one ends", async () => {
  const sent = new Sent();
  const calls = [1, 2, 3, 4, 5, 6].map((number) => sent.together.ask(number, SOON));
  expect(sent.requests).toEqual([[1], [2]]);
  sent.end();
  await expect.poll(() => sent.requests).toEqual([[1], [2], [3, 4, 5]]);
  sent.end();
  await expect.poll(() => sent.requests).toEqual([[1], [2], [3, 4, 5], [6]]);
  sent.end();
  sent.end();
  expect(await outcomesOf(calls)).toEqual([1, 2, 3, 4, 5, 6].map((number) => `answer ${number}`));
  const next = sent.together.ask(7, SOON);
  sent.end();
  expect(await next).toBe("answer 7");
});

test("what waits goes with the first of its kind, and others go after it, in their order", async () => {
  const sent = new Sent((one, first) => one % 2 === first % 2);
  const calls = [1, 2, 3, 4, 5, 6, 7, 9].map((number) => sent.together.ask(number, SOON));
  expect(sent.requests).toEqual([[1], [2]]);
  sent.end();
  await expect.poll(() => sent.requests.at(-1)).toEqual([3, 5, 7]);
  sent.end();
  await expect.poll(() => sent.requests.at(-1)).toEqual([4, 6]);
  sent.end();
  await expect.poll(() => sent.requests.at(-1)).toEqual([9]);
  sent.end();
  sent.end();
  const answers = [1, 2, 3, 4, 5, 6, 7, 9].map((number) => `answer ${number}`);
  expect(await outcomesOf(calls)).toEqual(answers);
});

/** Asks until two requests are under way and the third, of three calls, is sent. */
async function threeTogether(sent: Sent): Promise<readonly Promise<string>[]> {
  const first = [1, 2].map((number) => sent.together.ask(number, SOON));
  const calls = [3, 4, 5].map((number) => sent.together.ask(number, SOON));
  sent.end();
  sent.end();
  await Promise.all(first);
  await expect.poll(() => sent.requests.at(-1)).toEqual([3, 4, 5]);
  return calls;
}

test("calls that share a request share its outage", async () => {
  const sent = new Sent();
  const calls = await threeTogether(sent);
  sent.end(new RateLimiterUnavailable("down", { nothingWritten: true }));
  expect(await outcomesOf(calls)).toEqual(["down", "down", "down"]);
  expect(sent.requests).toHaveLength(3);
});

test("calls that share a request are sent alone when one of them is refused", async () => {
  const sent = new Sent();
  const calls = await threeTogether(sent);
  sent.end(new Error("one is malformed"));
  await expect.poll(() => sent.requests.slice(3)).toEqual([[3], [4], [5]]);
  sent.end(new Error("3 is malformed"));
  sent.end();
  sent.end();
  expect(await outcomesOf(calls)).toEqual(["3 is malformed", "answer 4", "answer 5"]);
});

test("a call whose time is over before it is sent says that it was not sent", async () => {
  const sent = new Sent();
  const busy = [1, 2].map((number) => sent.together.ask(number, SOON));
  const late = sent.together.ask(3, { timeoutMs: 0 });
  sent.end();
  sent.end();
  await expect(late).rejects.toThrow("late after 0 ms");
  await Promise.all(busy);
  expect(sent.requests).toEqual([[1], [2]]);
});

test("what is asked in one turn goes together, by kind, and nothing waits for an answer", async () => {
  const requests: (readonly string[])[] = [];
  const together = new Together<string, string>({
    max: 3,
    joins: ([one], [first]) => one === first,
    send: async (asked) => {
      requests.push(asked);
      return asked.map((text) => `answer ${text}`);
    },
    late: () => new Error("late"),
  });
  const inTurns = async (text: string) => {
    await Promise.resolve();
    return together.ask(text, SOON);
  };
  const texts = ["a1", "b1", "a2", "a3", "a4", "b2"];
  const answers = Promise.all(
    texts.map((text, at) => (at < 3 ? together.ask(text, SOON) : inTurns(text))),
  );
  expect(requests).toEqual([]);
  expect(await answers).toEqual(texts.map((text) => `answer ${text}`));
  expect(requests).toEqual([["a1", "a2", "a3"], ["b1", "b2"], ["a4"]]);
});
