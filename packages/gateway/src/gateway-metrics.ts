/** Collects what `/metrics` shows: the metrics of the limiter, and the gateway's own. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { observeMetrics } from "@zae-limiter/limiter/otel/metrics.ts";
import { OUTCOME } from "@zae-limiter/limiter/otel/names.ts";
import { PrometheusMeter } from "@zae-limiter/limiter/otel/prometheus-meter.ts";
import { Tally } from "@zae-limiter/limiter/otel/tally.ts";

/** Values of a label; all of them are words of the gateway, and few. */
const LABELS_MAX = 100;

export class GatewayMetrics {
  readonly #meter = new PrometheusMeter();
  readonly #answered = new Tally(["http.response.status_code"], LABELS_MAX);
  readonly #refused = new Tally(["zae_limiter.reason"], LABELS_MAX);
  readonly #readOn = new Tally([OUTCOME], LABELS_MAX);
  readonly #stop: () => void;

  /** `openCount` returns how many requests have not ended. */
  constructor(limiter: RateLimiter, openCount: () => number) {
    this.#stop = observeMetrics(limiter, this.#meter, 0);
    this.#count(
      "requests",
      "Requests that have ended, by the status of the answer",
      this.#answered,
    );
    this.#count("refusals", "Requests refused before any limit was asked", this.#refused);
    this.#count("read_on", "Calls read on after their client hung up", this.#readOn);
    this.#meter
      .createObservableGauge("zae_limiter.gateway.open_requests", {
        description: "Requests to the gateway that have not ended",
      })
      .addCallback((result) => result.observe(openCount()));
  }

  /** Counts a request that has ended; 499: its client hung up. */
  answered(status: number): void {
    this.#answered.add(1, String(status));
  }

  /** Counts a request that was refused before any limit was asked. */
  refused(reason: string): void {
    this.#refused.add(1, reason);
  }

  /** Counts a call that was to be read on after its client hung up, by how that ended. */
  readOn(outcome: string): void {
    this.#readOn.add(1, outcome);
  }

  /** Returns all metrics in the text format of Prometheus. */
  text(): string {
    return this.#meter.text();
  }

  stop(): void {
    this.#stop();
  }

  #count(name: string, description: string, tally: Tally): void {
    const counter = this.#meter.createObservableCounter(`zae_limiter.gateway.${name}`, {
      description,
    });
    counter.addCallback((result) => tally.observe(result));
  }
}
