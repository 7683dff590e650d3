/** Latencies in an HDR histogram: three significant digits, from a microsecond up. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from "hdr-histogram-js";

const DIGITS = 3;
/** Counts are kept as 64-bit floats: exact up to 2^53. */
const BITS = 64;

/** A histogram as text, and the exact maximum: the histogram knows it to three digits only. */
export interface LatenciesWire {
  readonly histogram: string;
  readonly maxMicros: number;
}

/** Counts latencies. Two of them can be added, which gives the percentiles of both together. */
export class Latencies {
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

  /** Returns the latency that so many percent of all do not exceed. */
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
