/**
 * Warm calls on PostgreSQL, decided by a function under the rows' locks. Each is a statement; while
 * several are under way, others of one bucket each wait for the next statement and share it.
 */

import { systemClock } from "../../base/time.ts";
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
import { CONNECTIONS_MAX, type PostgresConnection, type PostgresRow } from "./connection.ts";
import { lateError } from "./errors.ts";
import { arrayText, lockMs, textAt } from "./parameters.ts";
import { quoted } from "./schema/names.ts";

export interface PostgresBucketsOptions {
  /** Whether a call waits until it is on the disk of the server. */
  readonly durable: boolean;
}

/** A connection stays free for steps and records. */
const AT_ONCE = CONNECTIONS_MAX - 1;
/** Rows that one statement may lock: the calls of other processes wait for all of them. */
const TOGETHER_MAX = 32;

/** The states of `consume_1`, by their numbers. */
const OUTCOMES = ["refused", "granted", "outdated"] as const;

export class PostgresBuckets implements WarmBuckets {
  readonly #connection: PostgresConnection;
  readonly #waits: string;
  readonly #one: string;
  readonly #several: string;
  readonly #together: Together<Asked, Answered>;
  readonly #adjust: string;
  readonly #hold: string;
  serverDateSkewMs: number | undefined;

  constructor(connection: PostgresConnection, { durable }: PostgresBucketsOptions) {
    this.#connection = connection;
    this.#waits = String(durable);
    const schema = quoted(connection.schema);
    this.#one = `SELECT ${schema}.consume_1($1::text[])::text AS answer`;
    this.#several = `SELECT ${schema}.consume_1(c::text[])::text AS answer
      FROM unnest($1::text[]) AS c`;
    this.#together = new Together({
      atOnce: AT_ONCE,
      max: TOGETHER_MAX,
      // All calls of a statement wait for the disk, or none does.
      joins: (one, first) => waitsFor(one.leg) === waitsFor(first.leg),
      send: (asked, options) => this.#send(asked, options),
      late: (timeoutMs) => lateError(connection, timeoutMs, false),
    });
    this.#adjust = `SELECT ${schema}.adjust_1($1, $2, $3, $4::text::bigint[],
      $5::text::bigint[], $6::text::int, $7, $8::text::bigint, $9::text::boolean,
      $10::text::int, $11::text::bigint[], $12::text::text[])::text AS done`;
    this.#hold = `UPDATE ${schema}.items x SET valid_until = -($3::text::bigint)
      FROM (SELECT set_config('lock_timeout', $5, true) AS waits,
        CASE WHEN $6 = 'true' THEN '' ELSE set_config('synchronous_commit', 'off', true) END) s
      WHERE x.pk = $1 AND x.sk = $2 AND x.valid_until > -($4::text::bigint)
      AND s.waits IS NOT NULL RETURNING 'true' AS done`;
  }

  async consume(consume: WarmConsume, options: TableCallOptions): Promise<WarmAnswer | undefined> {
    const { configKey, knownVersion, nowMs, token } = consume;
    const legs = consume.legs.length === 1 ? consume.legs : consume.legs.toSorted(byKey);
    const consumed = amountsText(legs, (leg) => leg.consumedMilli);
    const gates = amountsText(legs, (leg) => leg.gatesMilli);
    const counted = amountsText(legs, (leg) => leg.countedMilli);
    const text = arrayText([
      arrayText(legs.map(({ key }) => key.PK)),
      arrayText(legs.map(({ key }) => key.SK)),
      arrayText(legs.map(({ build }) => build)),
      arrayText(legs.map(({ parentId }) => parentId)),
      `{${legs.map(({ cascades }) => cascades ?? "null").join(",")}}`,
      gates === consumed ? undefined : gates,
      consumed,
      counted === consumed ? undefined : counted,
      `{${legs.map(({ acquires }) => acquires).join(",")}}`,
      configKey.PK,
      configKey.SK,
      knownVersion === undefined ? undefined : String(knownVersion),
      nowMs === undefined ? undefined : String(nowMs),
      this.#waitsFor(legs),
      lockMs(options),
      ...(token === undefined ? [] : [arrayText(legs.flatMap(entriesOf)), token]),
    ]);
    const [leg] = legs;
    // Rows are locked in one order, so calls of several go alone: each has an order of its own.
    const [state, balances, version, now, ends, granted] =
      leg !== undefined && legs.length === 1
        ? await this.#together.ask({ leg, text }, options)
        : answerOf(await this.#connection.query(this.#one, [text], options), 0);
    if (nowMs === undefined && now !== null) this.serverDateSkewMs = now - systemClock();
    if (state === null) return undefined;
    const balancesMilli = inOrder(consume.legs, legs, balances);
    const outcome = OUTCOMES[state] as WarmAnswer["outcome"];
    const configVersion = version ?? 0;
    if (ends === null) return { outcome, balancesMilli, configVersion };
    const endsMs = inOrder(consume.legs, legs, ends);
    const grantedMilli = inOrder(consume.legs, legs, granted);
    return { outcome, balancesMilli, endsMs, grantedMilli, configVersion };
  }

  /** Sends calls in the order of their rows, and returns the answers in that of the calls. */
  async #send(asked: readonly Asked[], options: TableCallOptions): Promise<readonly Answered[]> {
    const [only] = asked;
    if (asked.length === 1 && only !== undefined) {
      return [answerOf(await this.#connection.query(this.#one, [only.text], options), 0)];
    }
    const sorted = asked.toSorted((one, other) => byKey(one.leg, other.leg));
    const calls = arrayText(sorted.map(({ text }) => text));
    const rows = await this.#connection.query(this.#several, [calls], options);
    const answers = new Map(sorted.map((each, at) => [each, answerOf(rows, at)]));
    return asked.map((each) => answers.get(each) as Answered);
  }

  async adjust(adjust: WarmAdjust, options: TableCallOptions): Promise<boolean> {
    const { leg, token, nowMs } = adjust;
    const { key, build, consumedMilli, countedMilli, acquires, endsMs } = leg;
    const amounts = [`{${consumedMilli.join(",")}}`, `{${countedMilli.join(",")}}`];
    const now = nowMs === undefined ? null : String(nowMs);
    const ends = endsMs === undefined ? null : `{${endsMs.join(",")}}`;
    const waits = this.#waitsFor([leg]);
    const entries = leg.entries === undefined ? null : arrayText(leg.entries);
    const rest = [String(acquires), token, now, waits, lockMs(options), ends, entries];
    const values = [key.PK, key.SK, build, ...amounts, ...rest];
    const [row] = await this.#connection.query(this.#adjust, values, options);
    return row?.["done"] === "true";
  }

  /** Slots wait for the disk: a crash that forgot a release would leave one without a lease. */
  #waitsFor(legs: readonly Pick<WarmLeg, "entries">[]): string {
    return legs.some(waitsFor) ? "true" : this.#waits;
  }

  async hold({ key, nowMs, endMs }: WarmHold, options: TableCallOptions): Promise<boolean> {
    const times = [String(endMs), String(nowMs), lockMs(options), this.#waits];
    const [row] = await this.#connection.query(this.#hold, [key.PK, key.SK, ...times], options);
    return row?.["done"] === "true";
  }
}

function waitsFor({ entries }: Pick<WarmLeg, "entries">): boolean {
  return entries !== undefined;
}

/** Returns an entry for each limit of a leg, or none. */
function entriesOf({ entries, consumedMilli }: WarmLeg): readonly (string | undefined)[] {
  return entries ?? consumedMilli.map(() => undefined);
}

/** A call of one bucket, as the function takes it. */
interface Asked {
  readonly leg: WarmLeg;
  readonly text: string;
}

/** The columns of an answer: state, balances, config version, time. */
type Answered = readonly [
  state: number | null,
  balances: number[] | null,
  version: number | null,
  now: number | null,
  ends: number[] | null,
  granted: number[] | null,
];

const TO_JSON: Readonly<Record<string, string>> = { "(": "[", ")": "]", "{": "[", "}": "]" };

/** Reads a row of numbers and of arrays of numbers, as in `(1,"{5,6}",3,)`. */
function answerOf(rows: readonly PostgresRow[], at: number): Answered {
  const text = textAt(rows[at], "answer")
    .replace(/[(){}"]/g, (mark) => TO_JSON[mark] ?? "")
    .replace(/(?<=[[,])(?=[,\]])/g, "null");
  return JSON.parse(text) as Answered;
}

/** Compares by the bytes of the keys, as the server sorts rows: all callers lock in one order. */
function byKey({ key: one }: WarmLeg, { key: other }: WarmLeg): number {
  const order = Buffer.compare(Buffer.from(one.PK), Buffer.from(other.PK));
  return order !== 0 ? order : Buffer.compare(Buffer.from(one.SK), Buffer.from(other.SK));
}

function amountsText(
  legs: readonly WarmLeg[],
  amountsOf: (leg: WarmLeg) => readonly number[],
): string {
  const [first] = legs;
  if (legs.length === 1 && first !== undefined) return `{${amountsOf(first).join(",")}}`;
  return `{${legs.flatMap(amountsOf).join(",")}}`;
}

/** Returns the balances of each leg in the caller's order. */
function inOrder(
  given: readonly WarmLeg[],
  sorted: readonly WarmLeg[],
  all: readonly number[] | null,
): readonly (readonly number[])[] {
  if (all === null) return [];
  if (given === sorted) return [all];
  const byLeg = new Map<WarmLeg, readonly number[]>();
  let from = 0;
  for (const leg of sorted) {
    byLeg.set(leg, all.slice(from, from + leg.consumedMilli.length));
    from += leg.consumedMilli.length;
  }
  return given.map((leg) => byLeg.get(leg) as readonly number[]);
}
