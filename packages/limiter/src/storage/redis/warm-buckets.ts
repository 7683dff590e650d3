/**
 * Warm calls on Redis and Valkey, decided by a script that nothing can interrupt. Calls of one turn
 * of the event loop share a script.
 */

import type { TableCallOptions } from "../item-table.ts";
import { Together } from "../together.ts";
import type {
  WarmAdjust,
  WarmAnswer,
  WarmBuckets,
  WarmConsume,
  WarmHold,
  WarmLeg,
} from "../warm-buckets.ts";
import type { RedisConnection } from "./connection.ts";
import { consumeArguments } from "./consume-arguments.ts";
import { lateError } from "./errors.ts";
import { rowKey, tagOfKey, tokenKey } from "./keys.ts";
import { listOf } from "./parameters.ts";
import { ADJUST, CONSUME, HOLD } from "./scripts/warm.ts";

/** The most calls of one script: while it runs, the server does nothing else. */
const TOGETHER_MAX = 8;

/** The script's answer to a call; null: it is not warm. */
type Answer = readonly number[] | null;

export class RedisBuckets implements WarmBuckets {
  readonly #connection: RedisConnection;
  readonly #together: Together<WarmConsume, WarmAnswer | undefined>;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
    this.#together = new Together({
      max: TOGETHER_MAX,
      joins: mayShare,
      send: (calls, options) => this.#consume(calls, options),
      late: (timeoutMs) => lateError(connection, timeoutMs, false),
    });
  }

  get serverDateSkewMs(): number | undefined {
    return this.#connection.serverDateSkewMs;
  }

  consume(consume: WarmConsume, options: TableCallOptions): Promise<WarmAnswer | undefined> {
    return this.#together.ask(consume, options);
  }

  async adjust(adjust: WarmAdjust, options: TableCallOptions): Promise<boolean> {
    const { leg, token, nowMs } = adjust;
    const { key, build, consumedMilli, countedMilli, acquires, endsMs, entries } = leg;
    const { prefix } = this.#connection;
    const keys = [rowKey(prefix, key), tokenKey(prefix, tagOfKey(key), token)];
    const args = [...this.#time(nowMs), build, String(acquires), String(consumedMilli.length)];
    for (const [at, amount] of consumedMilli.entries()) {
      const end = String(endsMs?.[at] ?? "");
      args.push(String(amount), String(countedMilli[at]), end, entries?.[at] ?? "");
    }
    return (await this.#connection.run(ADJUST, keys, args, options)) === 1;
  }

  async hold({ key, nowMs, endMs }: WarmHold, options: TableCallOptions): Promise<boolean> {
    const keys = [rowKey(this.#connection.prefix, key)];
    const args = [String(nowMs), String(endMs)];
    return (await this.#connection.run(HOLD, keys, args, options)) === 1;
  }

  async #consume(
    consumes: readonly WarmConsume[],
    options: TableCallOptions,
  ): Promise<readonly (WarmAnswer | undefined)[]> {
    const { nowMs } = consumes[0] as WarmConsume;
    const { prefix } = this.#connection;
    const { keys, args } = consumeArguments(prefix, this.#time(nowMs), consumes);
    const answer = listOf(await this.#connection.run(CONSUME, keys, args, options));
    const [version, ...answers] = answer as [number, ...Answer[]];
    return consumes.map(({ legs }, at) => answerOf(legs, answers[at], version));
  }

  /** Returns the time of a call, and whether it is of the caller's own clock. */
  #time(nowMs: number | undefined): [nowMs: string, isOwn: string] {
    return nowMs === undefined
      ? [String(this.#connection.serverNowMs()), "0"]
      : [String(nowMs), "1"];
  }
}

/** Whether calls are of one namespace, expect the same of it, and have the same clock. */
function mayShare(one: WarmConsume, other: WarmConsume): boolean {
  return (
    one.configKey.PK === other.configKey.PK &&
    one.knownVersion === other.knownVersion &&
    one.nowMs === other.nowMs
  );
}

function answerOf(
  legs: readonly WarmLeg[],
  answer: Answer | undefined,
  configVersion: number,
): WarmAnswer | undefined {
  if (answer === undefined) return { outcome: "outdated", balancesMilli: [], configVersion };
  if (answer === null) return undefined;
  const outcome = answer[0] === 1 ? "granted" : "refused";
  let from = 1;
  const next = () =>
    legs.map(({ consumedMilli: { length } }) => {
      from += length;
      return answer.slice(from - length, from);
    });
  const balancesMilli = next();
  if (answer.length === from) return { outcome, balancesMilli, configVersion };
  // Limits with periods: the ends of the periods, then what they have granted.
  return { outcome, balancesMilli, endsMs: next(), grantedMilli: next(), configVersion };
}
