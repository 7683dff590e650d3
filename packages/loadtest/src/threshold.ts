/** Conditions under which a run fails: `p99>50ms`, `errors>0.1%`, `rate<1000`. */

import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Figures } from "./figures.ts";

/** A condition that must not hold. */
export interface Threshold {
  readonly text: string;
  readonly isBroken: (figures: Figures) => boolean;
  /** Returns the measured value, for people. */
  readonly actual: (figures: Figures) => string;
}

type Metric = { readonly kind: "time" | "count" | "rate"; readonly of: (f: Figures) => number };

const METRICS: Readonly<Record<string, Metric>> = {
  mean: { kind: "time", of: (f) => f.meanMs },
  p50: { kind: "time", of: (f) => f.p50Ms },
  p95: { kind: "time", of: (f) => f.p95Ms },
  p99: { kind: "time", of: (f) => f.p99Ms },
  max: { kind: "time", of: (f) => f.maxMs },
  errors: { kind: "count", of: (f) => f.errors },
  failed: { kind: "count", of: (f) => f.counts.failed },
  refused: { kind: "count", of: (f) => f.counts.refused },
  degraded: { kind: "count", of: (f) => f.counts.degraded },
  granted: { kind: "count", of: (f) => f.counts.granted },
  acquires: { kind: "count", of: (f) => f.acquires },
  rate: { kind: "rate", of: (f) => f.perSecond },
};

const PATTERN = /^([a-z0-9]+)\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*(us|ms|s|%|\/s)?$/;
const MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000 };

export function parseThreshold(text: string): Threshold {
  const [, name = "", operator = "", digits = "", unit = ""] = PATTERN.exec(text.trim()) ?? [];
  const metric = Object.hasOwn(METRICS, name) ? METRICS[name] : undefined;
  const limit = metric && limitOf(metric, Number(digits), unit);
  if (metric === undefined || limit === undefined) {
    const reason = `expected a condition like "p99>50ms", "errors>0.1%" or "rate<1000", got ${show(text)}`;
    throw new ValidationError("fail-if", text, reason);
  }
  const isShare = unit === "%";
  const measured = (figures: Figures) =>
    isShare ? (100 * metric.of(figures)) / Math.max(1, figures.acquires) : metric.of(figures);
  return {
    text: text.trim(),
    isBroken: (figures) => compare(measured(figures), operator, limit),
    actual: (figures) => {
      const value = measured(figures);
      if (isShare) return `${value.toFixed(3)}%`;
      return metric.kind === "time" ? `${value.toFixed(2)}ms` : String(Math.round(value));
    },
  };
}

/** Returns the limit of a threshold; `undefined` where the unit is not one of the metric. */
function limitOf({ kind }: Metric, value: number, unit: string): number | undefined {
  if (kind === "time") return unit in MS ? value * (MS[unit] as number) : undefined;
  if (kind === "rate") return unit === "" || unit === "/s" ? value : undefined;
  return unit === "" || unit === "%" ? value : undefined;
}

function compare(value: number, operator: string, limit: number): boolean {
  if (operator === ">") return value > limit;
  if (operator === ">=") return value >= limit;
  return operator === "<" ? value < limit : value <= limit;
}
