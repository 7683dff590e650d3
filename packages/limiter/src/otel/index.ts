/**
 * OpenTelemetry metrics and traces of a limiter.
 *
 * @module
 */

export { type EntityLabel, type ObserveOptions, observe } from "./observe.ts";
