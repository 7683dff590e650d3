/** The surroundings of a deployment: AWS, time, and listeners. */

import { type Random, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import {
  type Clock,
  systemClock,
  systemTimer,
  type Timer,
} from "@zae-limiter/limiter/base/time.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { type Aws, type AwsConnection, connectAws } from "../client/aws.ts";
import type { StackEvent } from "../stack/stack-events.ts";

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
