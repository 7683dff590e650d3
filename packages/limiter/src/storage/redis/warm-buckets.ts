/** Warm calls on Redis and Valkey: one script each, which nothing can interrupt. */

import type { TableCallOptions } from "../item-table.ts";
import type { WarmAdjust, WarmAnswer, WarmBuckets, WarmConsume, WarmLeg } from "../warm-buckets.ts";
import type { RedisConnection } from "./connection.ts";
import { cellKeys, tagOfKey, tokenKey } from "./keys.ts";
import { ADJUST, CONSUME } from "./scripts/warm.ts";

/** The outcomes of `CONSUME`, by their numbers. */
const OUTCOMES = ["refused", "granted", "outdated"] as const;

export class RedisBuckets implements WarmBuckets {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  get serverDateSkewMs(): number | undefined {
    return this.#connection.serverDateSkewMs;
  }

  async consume(consume: WarmConsume, options: TableCallOptions): Promise<WarmAnswer | undefined> {
    const { legs, configKey, knownVersion, nowMs } = consume;
    const { prefix } = this.#connection;
    const keys = [cellKeys(prefix, configKey)[0]];
    const args = [...this.#time(nowMs), knownVersion === undefined ? "" : String(knownVersion)];
    for (const leg of legs) {
      keys.push(cellKeys(prefix, leg.key)[1]);
      pushLeg(args, leg);
    }
    const answer = await this.#connection.run(CONSUME, keys, args, options);
    if (!Array.isArray(answer)) return undefined;
    const [state, configVersion, ...numbers] = answer as number[];
    const outcome = OUTCOMES[state as number] as WarmAnswer["outcome"];
    if (outcome === "outdated") {
      return { outcome, balancesMilli: [], configVersion: configVersion as number };
    }
    let from = 0;
    const next = () =>
      legs.map(({ consumedMilli }) => {
        from += consumedMilli.length;
        return numbers.slice(from - consumedMilli.length, from);
      });
    const answered = { outcome, balancesMilli: next(), configVersion: configVersion as number };
    if (numbers.length === from) return answered;
    // Limits with periods: the ends of the periods, then what they have granted.
    const periods = { endsMs: next(), grantedMilli: next() };
    return { ...answered, ...periods };
  }

  async adjust(adjust: WarmAdjust, options: TableCallOptions): Promise<boolean> {
    const { leg, token, nowMs } = adjust;
    const { key, build, consumedMilli, countedMilli, acquires, endsMs } = leg;
    const { prefix } = this.#connection;
    const keys = [cellKeys(prefix, key)[1], tokenKey(prefix, tagOfKey(key), token)];
    const args = [...this.#time(nowMs), build, String(acquires), String(consumedMilli.length)];
    for (const [at, amount] of consumedMilli.entries()) {
      args.push(String(amount), String(countedMilli[at]), String(endsMs?.[at] ?? ""));
    }
    return (await this.#connection.run(ADJUST, keys, args, options)) === 1;
  }

  /** Returns the time of a call, and whether it is of the caller's own clock. */
  #time(nowMs: number | undefined): [nowMs: string, isOwn: string] {
    return nowMs === undefined
      ? [String(this.#connection.serverNowMs()), "0"]
      : [String(nowMs), "1"];
  }
}

function pushLeg(args: string[], leg: WarmLeg): void {
  const { build, parentId, cascades, acquires, consumedMilli, gatesMilli, countedMilli } = leg;
  const link = cascades === undefined ? "" : cascades ? "1" : "0";
  args.push(build, parentId ?? "", link, String(acquires), String(consumedMilli.length));
  for (const [at, amount] of consumedMilli.entries()) {
    args.push(String(amount), String(gatesMilli[at]), String(countedMilli[at]));
  }
}
