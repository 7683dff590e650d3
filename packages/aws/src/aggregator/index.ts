/** The entry point `zae-limiter/aggregator`. */

export type { AggregatorCounters } from "./counters.ts";
export { handler, type LambdaContext, type LambdaResponse } from "./lambda.ts";
export type { LambdaEvent, LambdaRecord } from "./lambda-event.ts";
export type { LogLevel } from "./log.ts";
export { type AggregatorRunOptions, runAggregator } from "./run.ts";
