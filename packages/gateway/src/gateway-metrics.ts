/** What `/metrics` of a gateway tells: the metrics of its limiter, and its requests. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { observeMetrics } from "@zae-limiter/limiter/otel/metrics.ts";
import { PrometheusMeter } from "@zae-limiter/limiter/otel/prometheus-meter.ts";
import { Tally } from "@zae-limiter/limiter/otel/tally.ts";

export class GatewayMetrics {
  readonly #meter = new PrometheusMeter();
  readonly #answered = new Tally(["http.response.status_code"]);
  readonly #stop: () => void;

  /** `openCount` tells how many requests have not ended. */
  constructor(limiter: RateLimiter, openCount: () => number) {
    this.#stop = observeMetrics(limiter, this.#meter, 0);
    this.#meter
      .createObservableCounter("zae_limiter.gateway.requests", {
        description: "Requests to the gateway that have ended, by the status of their answer",
      })
      .addCallback((result) => this.#answered.observe(result));
    this.#meter
      .createObservableGauge("zae_limiter.gateway.open_requests", {
        description: "Requests to the gateway that have not ended",
      })
      .addCallback((result) => result.observe(openCount()));
  }

  answered(status: number): void {
    this.#answered.add(1, String(status));
  }

  /** Returns all metrics in the text format of Prometheus. */
  text(): string {
    return this.#meter.text();
  }

  stop(): void {
    this.#stop();
  }
}
