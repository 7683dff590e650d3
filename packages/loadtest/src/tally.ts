/** Counts the outcomes of the acquires of one class of users. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from "hdr-histogram-js";

/** `failed`: the acquire threw anything else than a refusal. */
export type Outcome = "granted" | "refused" | "degraded" | "failed";

const OUTCOMES: readonly Outcome[] = ["granted", "refused", "degraded", "failed"];

/** Different messages that are kept; further ones are counted together. */
const MESSAGES_MAX = 20;
const MESSAGE_LENGTH_MAX = 200;
const OTHER_MESSAGES = "other errors";

/** A tally as JSON, from a worker to the coordinator. */
export interface TallyWire {
  readonly counts: Readonly<Record<Outcome, number>>;
  readonly tasks: number;
  readonly brokenTasks: number;
  readonly consumed: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  readonly latencies: LatenciesWire;
}

/** Counts and latencies. Two of them can be added. */
export class Tally {
  readonly counts: Record<Outcome, number> = { granted: 0, refused: 0, degraded: 0, failed: 0 };
  tasks = 0;
  /** How many of them threw something else than a refusal or a failed acquire. */
  brokenTasks = 0;
  /** Tokens by limit name, net, of the entities that acquired; ancestors are not added in. */
  readonly consumed = new Map<string, number>();
  /** How often each message of an error came. */
  readonly errors = new Map<string, number>();
  readonly latencies = new Latencies();

  get acquires(): number {
    const { granted, refused, degraded, failed } = this.counts;
    return granted + refused + degraded + failed;
  }

  count(outcome: Outcome, latencyMs: number): void {
    this.counts[outcome] += 1;
    this.latencies.record(latencyMs);
  }

  consume(amounts: Readonly<Partial<Record<string, number>>>): void {
    for (const [name, amount = 0] of Object.entries(amounts)) increase(this.consumed, name, amount);
  }

  fail(error: unknown): void {
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.#message(message.replace(/\s+/g, " ").slice(0, MESSAGE_LENGTH_MAX), 1);
  }

  add(other: Tally): void {
    for (const outcome of OUTCOMES) this.counts[outcome] += other.counts[outcome];
    this.tasks += other.tasks;
    this.brokenTasks += other.brokenTasks;
    for (const [name, amount] of other.consumed) increase(this.consumed, name, amount);
    for (const [message, count] of other.errors) this.#message(message, count);
    this.latencies.add(other.latencies);
  }

  toWire(): TallyWire {
    return {
      counts: { ...this.counts },
      tasks: this.tasks,
      brokenTasks: this.brokenTasks,
      consumed: Object.fromEntries(this.consumed),
      errors: Object.fromEntries(this.errors),
      latencies: this.latencies.toWire(),
    };
  }

  static fromWire(wire: TallyWire): Tally {
    const tally = new Tally();
    for (const outcome of OUTCOMES) tally.counts[outcome] = wire.counts[outcome];
    tally.tasks = wire.tasks;
    tally.brokenTasks = wire.brokenTasks;
    tally.consume(wire.consumed);
    for (const [message, count] of Object.entries(wire.errors)) tally.#message(message, count);
    tally.latencies.add(Latencies.fromWire(wire.latencies));
    return tally;
  }

  #message(message: string, count: number): void {
    const isKept = this.errors.has(message) || this.errors.size < MESSAGES_MAX;
    increase(this.errors, isKept ? message : OTHER_MESSAGES, count);
  }
}

function increase(map: Map<string, number>, name: string, amount: number): void {
  map.set(name, (map.get(name) ?? 0) + amount);
}

const DIGITS = 3;
/** Counts are kept as 64-bit floats: exact up to 2^53. */
const BITS = 64;

/** A histogram as text, and the exact maximum: the histogram knows it to three digits only. */
interface LatenciesWire {
  readonly histogram: string;
  readonly maxMicros: number;
}

/**
 * Counts latencies in an HDR histogram: three significant digits, from a microsecond up. Two can be
 * added, which gives the percentiles of both together.
 */
class Latencies {
  readonly #histogram: Histogram = build({
    bitBucketSize: BITS,
    autoResize: true,
    highestTrackableValue: 2,
    numberOfSignificantValueDigits: DIGITS,
    useWebAssembly: false,
  });
  #maxMicros = 0;

  get count(): number {
    return this.#histogram.totalCount;
  }

  get maxMs(): number {
    return this.#maxMicros / 1000;
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.#histogram.mean / 1000;
  }

  record(ms: number): void {
    const micros = Math.max(0, Math.round(ms * 1000));
    this.#histogram.recordValue(micros);
    if (micros > this.#maxMicros) this.#maxMicros = micros;
  }

  /** Returns the latency that `percent` percent of all do not exceed. */
  percentileMs(percent: number): number {
    if (this.count === 0) return 0;
    return Math.min(this.#histogram.getValueAtPercentile(percent), this.#maxMicros) / 1000;
  }

  add(other: Latencies): void {
    this.#histogram.add(other.#histogram);
    this.#maxMicros = Math.max(this.#maxMicros, other.#maxMicros);
  }

  toWire(): LatenciesWire {
    return {
      histogram: encodeIntoCompressedBase64(this.#histogram),
      maxMicros: this.#maxMicros,
    };
  }

  static fromWire({ histogram, maxMicros }: LatenciesWire): Latencies {
    const latencies = new Latencies();
    try {
      latencies.#histogram.add(decodeFromCompressedBase64(histogram, BITS, false));
    } catch (cause) {
      const reason = "expected an encoded HDR histogram";
      throw Object.assign(new ValidationError("histogram", histogram, reason), { cause });
    }
    latencies.#maxMicros = maxMicros;
    return latencies;
  }
}
