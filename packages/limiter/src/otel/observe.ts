/** Observes a limiter: connects its events to the meter and the tracer of OpenTelemetry. */

import { type Meter, metrics, type Tracer, trace } from "@opentelemetry/api";
import { whenReached } from "../acquire/late-store.ts";
import { RateLimiter } from "../acquire/rate-limiter.ts";
import { checkFields, checkInteger, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { CLIENT_VERSION } from "../domain/version.ts";
import { observeMetrics } from "./metrics.ts";
import { observeTraces } from "./traces.ts";

/** Gives up to `max` of the busiest entities a label of their own; the others are `other`. */
export type EntityLabel = false | { readonly max: number };

/** Options of `observe`: the meter, the tracer and the labels. */
export interface ObserveOptions {
  /** Default: the global meter provider's. `false`: no metrics. */
  readonly meter?: Meter | false;
  /** Default: the global tracer provider's. `false`: no traces. */
  readonly tracer?: Tracer | false;
  /** Default `false`: no label grows with the number of entities. */
  readonly entityLabel?: EntityLabel;
}

const NAME = "zae-limiter";
const LABELS_MAX = 1000;

/**
 * Exports metrics and traces of a limiter from now on, or from when its store is first reached; the
 * result stops it. It needs the package
 * `@opentelemetry/api`; docs/operators/monitoring.md names all metrics.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { observe } from 'zae-limiter/otel';
 * const limiter = await RateLimiter.open('memory:');
 * const stop = observe(limiter); // with the global meter and tracer provider
 * await limiter.acquire({
 *   entityId: 'key-1', resource: 'gpt-4', limits: ['rpm:10'], consume: { rpm: 1 },
 * });
 * stop();
 * await limiter.close();
 * ```
 */
export function observe<Names extends string>(
  limiter: RateLimiter<Names>,
  options: ObserveOptions = {},
): () => void {
  if (!(limiter instanceof RateLimiter)) {
    throw new ValidationError("limiter", limiter, `expected a RateLimiter, got ${show(limiter)}`);
  }
  checkFields("options", options, ["meter", "tracer", "entityLabel"]);
  const entityLabel = checkEntityLabel(options.entityLabel);
  const meter = options.meter ?? metrics.getMeter(NAME, CLIENT_VERSION);
  const tracer = options.tracer ?? trace.getTracer(NAME, CLIENT_VERSION);
  const observed = limiter as unknown as RateLimiter;
  return whenReached(observed, () => {
    const ends = [
      ...(meter === false ? [] : [observeMetrics(observed, meter, entityLabel)]),
      ...(tracer === false ? [] : [observeTraces(observed, tracer)]),
    ];
    return () => {
      for (const end of ends.splice(0)) end();
    };
  });
}

function checkEntityLabel(label: EntityLabel | undefined): number {
  if (label === undefined || label === false) return 0;
  if (typeof label !== "object" || label === null) {
    const reason = `expected false or { max }, got ${show(label)}`;
    throw new ValidationError("entityLabel", label, reason);
  }
  checkFields("entityLabel", label, ["max"]);
  checkInteger("entityLabel.max", label.max, 1, LABELS_MAX);
  return label.max;
}
