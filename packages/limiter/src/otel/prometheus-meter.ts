/**
 * A meter that writes the text format of Prometheus, for servers of this package that offer
 * `/metrics`. Names are those that the exporter of OpenTelemetry writes, so the same dashboards
 * work with both. It needs no package: of `@opentelemetry/api` only types are used.
 */

import type {
  Attributes,
  Histogram,
  MetricOptions,
  Observable,
  ObservableResult,
} from "@opentelemetry/api";
import { entryOf } from "../base/entry.ts";
import type { MetricsMeter } from "./metrics.ts";

/** `content-type` of the text. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Kind = "counter" | "gauge" | "histogram";
type Observe = (result: ObservableResult) => void;

/** Writes the lines of one metric, without its header. */
type Lines = () => Generator<string>;

export class PrometheusMeter implements MetricsMeter {
  readonly #metrics: { header: string; lines: Lines }[] = [];

  createObservableCounter(name: string, options: MetricOptions = {}): Observable {
    return this.#observable(`${nameOf(name, options)}_total`, "counter", options);
  }

  createObservableGauge(name: string, options: MetricOptions = {}): Observable {
    return this.#observable(nameOf(name, options), "gauge", options);
  }

  /** Creates a gauge: a sum that also falls is one to Prometheus. */
  createObservableUpDownCounter(name: string, options: MetricOptions = {}): Observable {
    return this.#observable(nameOf(name, options), "gauge", options);
  }

  createHistogram(name: string, options: MetricOptions = {}): Histogram {
    const histogram = new Buckets(options.advice?.explicitBucketBoundaries ?? []);
    const shown = nameOf(name, options);
    this.#add(shown, "histogram", options, () => histogram.lines(shown));
    return histogram;
  }

  /** Returns all metrics as they are now. */
  text(): string {
    let text = "";
    for (const { header, lines } of this.#metrics) {
      const values = [...lines()];
      if (values.length > 0) text += `${header}${values.join("\n")}\n`;
    }
    return text;
  }

  #observable(name: string, kind: Kind, options: MetricOptions): Observable {
    const callbacks = new Set<Observe>();
    this.#add(name, kind, options, function* lines() {
      const observed: string[] = [];
      const result: ObservableResult = {
        observe: (value, attributes = {}) => {
          observed.push(`${name}${labelled(attributes)} ${value}`);
        },
      };
      for (const callback of callbacks) callback(result);
      yield* observed;
    });
    return {
      addCallback: (callback) => void callbacks.add(callback as Observe),
      removeCallback: (callback) => void callbacks.delete(callback as Observe),
    };
  }

  #add(name: string, kind: Kind, { description = "" }: MetricOptions, lines: Lines): void {
    const header = `# HELP ${name} ${escaped(description)}\n# TYPE ${name} ${kind}\n`;
    this.#metrics.push({ header, lines });
  }
}

/** Series of one histogram; values with further labels share one. */
const SERIES_MAX = 1000;
const OTHER = "other";

interface Series {
  readonly attributes: Attributes;
  /** How many values fell between a boundary and the one before; the last has no boundary. */
  readonly counts: number[];
  sum: number;
}

class Buckets implements Histogram {
  readonly #boundaries: readonly number[];
  readonly #series = new Map<string, Series>();
  /** Series by the attributes themselves, for callers that pass the same ones each time. */
  readonly #known = new WeakMap<Attributes, Series>();
  /** The attributes that came last, which often come again. */
  #last: Attributes | undefined;
  #lastSeries: Series | undefined;

  constructor(boundaries: readonly number[]) {
    this.#boundaries = boundaries;
  }

  record(value: number, attributes: Attributes = {}): void {
    const series = this.#seriesFor(attributes);
    const boundaries = this.#boundaries;
    let at = 0;
    while (at < boundaries.length && value > (boundaries[at] as number)) at += 1;
    series.counts[at] = (series.counts[at] ?? 0) + 1;
    series.sum += value;
  }

  #seriesFor(attributes: Attributes): Series {
    if (attributes === this.#last && this.#lastSeries !== undefined) return this.#lastSeries;
    this.#last = attributes;
    this.#lastSeries = this.#known.get(attributes) ?? this.#seriesOf(attributes);
    return this.#lastSeries;
  }

  #seriesOf(attributes: Attributes): Series {
    const isFull = this.#series.size >= SERIES_MAX;
    const known = this.#series.get(keyOf(attributes));
    const series = known ?? this.#added(isFull ? otherOf(attributes) : attributes);
    this.#known.set(attributes, series);
    return series;
  }

  #added(attributes: Attributes): Series {
    const counts: number[] = new Array(this.#boundaries.length + 1).fill(0);
    return entryOf(this.#series, keyOf(attributes), () => ({ attributes, counts, sum: 0 }));
  }

  *lines(name: string): Generator<string> {
    for (const { attributes, counts, sum } of this.#series.values()) {
      let total = 0;
      for (const [at, count] of counts.entries()) {
        total += count;
        const le = String(this.#boundaries[at] ?? "+Inf");
        yield `${name}_bucket${labelled({ ...attributes, le })} ${total}`;
      }
      yield `${name}_sum${labelled(attributes)} ${sum}`;
      yield `${name}_count${labelled(attributes)} ${total}`;
    }
  }
}

function keyOf(attributes: Attributes): string {
  return Object.values(attributes).join("\u0000");
}

function otherOf(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.keys(attributes).map((name) => [name, OTHER]));
}

function nameOf(name: string, { unit }: MetricOptions): string {
  return underscored(name) + (unit === "s" ? "_seconds" : "");
}

function underscored(name: string): string {
  return name.replace(/[^\w]/g, "_");
}

function labelled(attributes: Attributes): string {
  const labels = Object.entries(attributes).map(
    ([name, value]) => `${underscored(name)}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return labels.length === 0 ? "" : `{${labels.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
