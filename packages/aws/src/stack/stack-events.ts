/** Follows the events of a stack as they happen, and finds the first that failed. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import type { StackFailureEvent } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { type Aws, pagesOf } from "../client/aws.ts";
import { findStack, isBusy, isMissing, type Stack } from "./stack.ts";

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
  /** The id that CloudFormation gave the event. */
  readonly id: string;
  /** When it happened. */
  readonly at: Date | undefined;
  /** The logical id in the template. */
  readonly resource: string;
  /** Its name or ARN on AWS, as soon as there is one. */
  readonly physicalId: string | undefined;
  /** The type of the resource, such as `AWS::DynamoDB::Table`. */
  readonly type: string;
  /** The status of the resource, such as `CREATE_COMPLETE`. */
  readonly status: string;
  /** Why it failed, or another remark of CloudFormation. */
  readonly reason: string | undefined;
}

export interface Watch {
  readonly timer: Timer;
  readonly onEvent?: ((event: StackEvent) => void) | undefined;
}

/**
 * When a stack has been followed to the end.
 *
 * - `rested`: when it is not busy. Enough for an operation that was seen under way.
 * - `changed`: when its own events show the end of an operation. One that was just begun may not be
 *   seen yet: for some seconds CloudFormation may still show the stack as before.
 * - `deleted`: the same, or when it is gone.
 */
type WatchEnd = "rested" | "changed" | "deleted";

interface Watched {
  readonly stack: Stack | undefined;
  readonly events: readonly StackEvent[];
}

/** Polls often at first and then less often, because CloudFormation throttles. */
const POLLS_MS = [500, 1000, 2000, 3000, 5000];
/** Milliseconds for which a stack that seems idle may show no events; emulators may have none. */
const SILENCE_MS_MAX = 60_000;
const STOOD: readonly string[] = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"];
const STACK_TYPE = "AWS::CloudFormation::Stack";
/** Consequences of a failure elsewhere. */
const CONSEQUENCE = /cancelled|canceled|rollback requested|following resource\(s\) failed/i;

/** Returns the latest event, to follow the stack from there. */
export async function latestEvent(aws: Aws, stackId: string): Promise<string | undefined> {
  const [event] = await newEvents(aws, stackId, undefined, 1);
  return event?.id;
}

/** Follows a stack from after an event to its end. */
export async function watchStack(
  aws: Aws,
  stackId: string,
  after: string | undefined,
  { timer, onEvent }: Watch,
  end: WatchEnd,
): Promise<Watched> {
  const events: StackEvent[] = [];
  let last = after;
  let silentSinceMs: number | undefined;
  for (let poll = 0; ; poll += 1) {
    // The status is read first: the events read after it include whatever led to it.
    const stack = await findStack(aws, stackId);
    const fresh = await newEvents(aws, stackId, last);
    for (const event of fresh) onEvent?.(event);
    events.push(...fresh);
    last = events.at(-1)?.id ?? last;
    if (isEnd(end, { stack, events })) return { stack, events };
    if (stack !== undefined && isBusy(stack.status)) silentSinceMs = undefined;
    else silentSinceMs ??= timer.nowMs();
    if (timer.nowMs() - (silentSinceMs ?? timer.nowMs()) >= SILENCE_MS_MAX)
      return { stack, events };
    await timer.sleep(POLLS_MS[Math.min(poll, POLLS_MS.length - 1)] as number);
  }
}

function isEnd(end: WatchEnd, { stack, events }: Watched): boolean {
  if (end === "rested") return stack === undefined || !isBusy(stack.status);
  if (end === "deleted" && (stack === undefined || stack.status === "DELETE_COMPLETE")) return true;
  if (stack === undefined || isBusy(stack.status)) return false;
  return events.findLast((event) => isAbout(event, stack))?.status === stack.status;
}

/** Returns whether an event is of the stack itself. One of its resources may be a stack, too. */
function isAbout({ type, resource, physicalId }: StackEvent, { id, name }: Stack): boolean {
  return type === STACK_TYPE && (physicalId === undefined ? resource === name : physicalId === id);
}

/** Whether a stack never was created completely, as far as its events go back. */
export async function neverStood(aws: Aws, stack: Stack): Promise<boolean> {
  const events = await newEvents(aws, stack.id, undefined);
  const statuses = events.filter((event) => isAbout(event, stack)).map(({ status }) => status);
  // CloudFormation drops old events; without the first one the list is incomplete.
  const isComplete = ["REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS"].includes(statuses[0] ?? "");
  return isComplete && !statuses.some((status) => STOOD.includes(status));
}

/** Returns the failure that caused the others. */
export function firstCause(events: readonly StackEvent[]): StackEvent | undefined {
  const failures = events.filter(({ status }) => status.endsWith("_FAILED"));
  const reasons = failures.filter(({ reason }) => reason !== undefined);
  return reasons.find(({ reason = "" }) => !CONSEQUENCE.test(reason)) ?? reasons[0] ?? failures[0];
}

/** Returns the failed steps, as an error carries them. */
export function failureEvents(events: readonly StackEvent[]): StackFailureEvent[] {
  return events
    .filter(({ status }) => status.endsWith("_FAILED"))
    .map(({ resource, status, reason }) => defined({ resource, status, reason }));
}

/** Returns new events in the order they happened; CloudFormation lists the newest first. */
async function newEvents(
  aws: Aws,
  stackId: string,
  after: string | undefined,
  most = Number.POSITIVE_INFINITY,
): Promise<StackEvent[]> {
  const found: StackEvent[] = [];
  const pages = pagesOf(aws, "cloudformation:DescribeStackEvents", { StackName: stackId });
  try {
    for await (const { StackEvents = [] } of pages) {
      for (const event of StackEvents) {
        if (event.EventId === after || found.length >= most) return found.reverse();
        found.push({
          id: event.EventId ?? "",
          at: event.Timestamp,
          resource: event.LogicalResourceId ?? "",
          physicalId: event.PhysicalResourceId,
          type: event.ResourceType ?? "",
          status: event.ResourceStatus ?? "",
          reason: event.ResourceStatusReason,
        });
      }
    }
  } catch (error) {
    // A stack that is not there, or not yet, has no events.
    if (!isMissing(error)) throw error;
  }
  return found.reverse();
}
