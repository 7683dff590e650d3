/** What deploying works with: AWS, time, and listeners. */

import { type Clock, systemClock } from "../domain/clock.ts";
import { type Random, systemRandom } from "../domain/random.ts";
import { systemTimer, type Timer } from "../domain/timer.ts";
import type { DynamoOptions } from "../repository/options.ts";
import { type Aws, type AwsConnection, connectAws } from "./aws.ts";
import type { StackEvent } from "./stack-events.ts";

export interface DeployContext {
  readonly aws: Aws;
  readonly timer: Timer;
  readonly clock: Clock;
  readonly random: Random;
  readonly endpoint?: string | undefined;
  readonly onEvent?: ((event: StackEvent) => void) | undefined;
  /** Receives a sentence for each step. */
  readonly onStep?: ((step: string) => void) | undefined;
}

/** Connects to AWS; the caller closes the connection. */
export function deployContext(request: {
  readonly connection: DynamoOptions;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: StackEvent) => void;
  readonly onStep?: (step: string) => void;
}): DeployContext {
  const { connection, signal, onEvent, onStep } = request;
  return {
    aws: connectAws(connection as AwsConnection, signal),
    timer: stoppableTimer(connection.timer ?? systemTimer, signal),
    clock: connection.clock ?? systemClock,
    random: connection.random ?? systemRandom,
    endpoint: connection.endpoint,
    onEvent,
    onStep,
  };
}

/** Returns a timer whose sleep ends with the reason of the stop signal. */
export function stoppableTimer(timer: Timer, signal: AbortSignal | undefined): Timer {
  if (signal === undefined) return timer;
  return {
    nowMs: () => timer.nowMs(),
    sleep: async (ms) => {
      signal.throwIfAborted();
      await timer.sleep(ms, signal);
      signal.throwIfAborted();
    },
  };
}
