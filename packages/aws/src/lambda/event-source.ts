/** The mapping that feeds the aggregator from the stream. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Aws } from "../client/aws.ts";

interface EventSource {
  /** As Lambda says it: `Enabled`, `Creating`, … */
  readonly state: string;
  /** The result of the last batch, if there was one. */
  readonly lastResult: string | undefined;
}

interface EventSourceWait {
  readonly timer: Timer;
  /** How long it may take. */
  readonly timeoutMs?: number;
  /** How long it must have been there. */
  readonly settleMs?: number;
}

const TIMEOUT_MS = 120_000;
const POLL_MS = 5000;
const OFF: readonly string[] = ["Disabled", "Disabling"];
const WORKING = /^(OK|No records processed)$/i;

export async function eventSourceOf(
  aws: Aws,
  functionName: string,
): Promise<EventSource | undefined> {
  const { EventSourceMappings = [] } = await aws.send("lambda:ListEventSourceMappings", {
    FunctionName: functionName,
  });
  const [found] = EventSourceMappings;
  if (found === undefined) return undefined;
  return { state: found.State ?? "", lastResult: found.LastProcessingResult };
}

/** Returns true when it reads the stream; false when it is switched off, or not ready in time. */
export async function eventSourceReady(
  aws: Aws,
  functionName: string,
  { timer, timeoutMs = TIMEOUT_MS, settleMs = 0 }: EventSourceWait,
): Promise<boolean> {
  const startedMs = timer.nowMs();
  let enabledMs: number | undefined;
  for (;;) {
    const source = await eventSourceOf(aws, functionName);
    if (source !== undefined && OFF.includes(source.state)) return false;
    if (source?.state === "Enabled") {
      enabledMs ??= timer.nowMs();
      const settled = timer.nowMs() - enabledMs >= settleMs;
      if (settled && WORKING.test(source.lastResult ?? "")) return true;
    }
    if (timer.nowMs() - startedMs + POLL_MS > timeoutMs) return false;
    await timer.sleep(POLL_MS);
  }
}
