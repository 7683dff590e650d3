/** What happens in a stack: told as it happens, and the first thing that went wrong. */

import type { StackFailureEvent } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import type { Aws } from "./aws.ts";
import { findStack, isBusy, type Stack } from "./stack.ts";

/**
 * One step of a stack operation.
 *
 * @example
 * ```ts
 * import type { StackEvent } from 'zae-limiter/infra';
 * const line = ({ status, type, resource }: StackEvent) => `${status} ${type} ${resource}`;
 * ```
 */
export interface StackEvent {
  readonly id: string;
  readonly at: Date | undefined;
  /** The logical id in the template. */
  readonly resource: string;
  readonly type: string;
  readonly status: string;
  readonly reason: string | undefined;
}

export interface Watch {
  readonly timer: Timer;
  readonly onEvent?: ((event: StackEvent) => void) | undefined;
}

/** CloudFormation is asked soon at first and then less often: it counts every question. */
const POLLS_MS = [500, 1000, 2000, 3000, 5000];
/** Consequences of a failure elsewhere. */
const CONSEQUENCE = /cancelled|canceled|rollback requested|following resource\(s\) failed/i;

/** The last thing that has happened, to go on from there. */
export async function latestEvent(aws: Aws, stackId: string): Promise<string | undefined> {
  const [event] = await newEvents(aws, stackId, undefined, 1);
  return event?.id;
}

/** Follows a stack from after an event until it rests. */
export async function watchStack(
  aws: Aws,
  stackId: string,
  after: string | undefined,
  { timer, onEvent }: Watch,
): Promise<{ readonly stack: Stack | undefined; readonly events: readonly StackEvent[] }> {
  const events: StackEvent[] = [];
  let last = after;
  for (let poll = 0; ; poll += 1) {
    // The state first: whatever led to it is then among the events.
    const stack = await findStack(aws, stackId);
    const fresh = await newEvents(aws, stackId, last);
    for (const event of fresh) onEvent?.(event);
    events.push(...fresh);
    last = events.at(-1)?.id ?? last;
    if (stack === undefined || !isBusy(stack.status)) return { stack, events };
    await timer.sleep(POLLS_MS[Math.min(poll, POLLS_MS.length - 1)] as number);
  }
}

/** The failure that all others follow from. */
export function firstCause(events: readonly StackEvent[]): StackEvent | undefined {
  const failures = events.filter(({ status }) => status.endsWith("_FAILED"));
  const reasons = failures.filter(({ reason }) => reason !== undefined);
  return reasons.find(({ reason = "" }) => !CONSEQUENCE.test(reason)) ?? reasons[0] ?? failures[0];
}

/** The failed steps, as an error carries them. */
export function failureEvents(events: readonly StackEvent[]): StackFailureEvent[] {
  return events
    .filter(({ status }) => status.endsWith("_FAILED"))
    .map(({ resource, status, reason }) => ({
      resource,
      status,
      ...(reason === undefined ? {} : { reason }),
    }));
}

/** In the order in which they happened. CloudFormation tells the newest first, page by page. */
async function newEvents(
  aws: Aws,
  stackId: string,
  after: string | undefined,
  most = Number.POSITIVE_INFINITY,
): Promise<StackEvent[]> {
  const found: StackEvent[] = [];
  let next: string | undefined;
  do {
    const page = await aws.send("cloudformation:DescribeStackEvents", {
      StackName: stackId,
      ...(next === undefined ? {} : { NextToken: next }),
    });
    for (const event of page.StackEvents ?? []) {
      if (event.EventId === after || found.length >= most) return found.reverse();
      found.push({
        id: event.EventId ?? "",
        at: event.Timestamp,
        resource: event.LogicalResourceId ?? "",
        type: event.ResourceType ?? "",
        status: event.ResourceStatus ?? "",
        reason: event.ResourceStatusReason,
      });
    }
    next = page.NextToken;
  } while (next !== undefined);
  return found.reverse();
}
