/** Workers in Lambda functions: how they are invoked, and what they may cost. */

import { type AwsConnection, connectAws } from "@zae-limiter/aws/client/aws.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { dollarsOf, ON_DEMAND_PRICES } from "@zae-limiter/limiter/storage/dynamodb/prices.ts";
import type { MakeFleet } from "@zae-limiter/loadtest/fleet.ts";
import type { RoundAnswer, RoundOrder } from "@zae-limiter/loadtest/lambda-worker.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import { RoundFleet } from "@zae-limiter/loadtest/round-fleet.ts";
import type { Prepared } from "./prepared.ts";

/** Dollars for Lambda functions on arm64. */
const LAMBDA_PRICES = Object.freeze({
  region: "us-east-1",
  asOf: "2025-07-21",
  perGigabyteSecond: 0.0000133334,
  perMillionRequests: 0.2,
});

/** Ctrl-C waits for the round that is under way; a shorter one has more gaps. */
const ROUND_MS = 15_000;
/** A round, what its tasks may take to end, and a cold start. */
const REQUEST_TIMEOUT_MS = ROUND_MS + 60_000;
const MEMORY_GIGABYTES = 1769 / 1024;

interface LambdaWorkers {
  readonly functionName: string;
  readonly scenario: string;
  readonly workers: number;
  readonly connection: AwsConnection;
}

/** Returns workers in Lambda functions; `close` lets go of the connections. */
export function lambdaWorkers(
  prepared: Prepared,
  { functionName, scenario, workers, connection }: LambdaWorkers,
): { readonly makeFleet: MakeFleet; readonly close: () => void } {
  const aws = connectAws({
    ...connection,
    // An invocation that is repeated would consume twice.
    maxAttempts: 1,
    requestHandler: {
      requestTimeout: REQUEST_TIMEOUT_MS,
      httpAgent: { maxSockets: workers + 1 },
      httpsAgent: { maxSockets: workers + 1 },
    },
  });
  const invoke = async (order: RoundOrder): Promise<RoundAnswer> => {
    const { FunctionError, Payload } = await aws.send("lambda:Invoke", {
      FunctionName: functionName,
      Payload: Buffer.from(JSON.stringify(order)),
    });
    const text = Buffer.from(Payload ?? []).toString("utf8");
    if (FunctionError !== undefined) throw new Error(errorIn(text) ?? FunctionError);
    return JSON.parse(text) as RoundAnswer;
  };
  const makeFleet: MakeFleet = (plan, results) =>
    new RoundFleet({
      scenario,
      store: prepared.store,
      plan,
      workers,
      roundMs: ROUND_MS,
      invoke,
      onSlice: (worker, slice) => results.add(worker, slice),
      onLost: (lost) => results.lost.push(lost),
      timer: systemTimer,
    });
  return { makeFleet, close: () => aws.close() };
}

/** Says what a run may cost: the functions by their time, the table by its requests. */
export function costText(plan: Plan, workers: number): string {
  const seconds = plan.durationMs / 1000;
  const invocations = workers * (Math.ceil(plan.durationMs / ROUND_MS) + 1);
  const functions =
    workers * seconds * MEMORY_GIGABYTES * LAMBDA_PRICES.perGigabyteSecond +
    (invocations * LAMBDA_PRICES.perMillionRequests) / 1_000_000;
  const perMillion = dollarsOf({ readUnits: 0, writeUnits: 1_000_000 }, ON_DEMAND_PRICES);
  const table =
    plan.rate === undefined
      ? `and $${perMillion.toFixed(2)} per million acquires on the table`
      : `and about $${((plan.rate * seconds * perMillion) / 1_000_000).toFixed(2)} for ` +
        `${Math.round(plan.rate * seconds)} acquires of 1 WCU on the table`;
  return (
    `${workers} Lambda workers for ${seconds} s cost about $${functions.toFixed(2)}, ${table} ` +
    `(prices of ${LAMBDA_PRICES.region}, ${LAMBDA_PRICES.asOf}).`
  );
}

/** Returns the message that Lambda puts into the payload of a failed invocation. */
function errorIn(text: string): string | undefined {
  try {
    const { errorMessage, errorType } = JSON.parse(text) as Record<string, string | undefined>;
    return errorMessage ?? errorType;
  } catch {
    return undefined;
  }
}
