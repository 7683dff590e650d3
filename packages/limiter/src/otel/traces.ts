/** Spans of acquires, with the requests to the store as their children. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  type Attributes,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { AcquireEvent } from "../acquire/events.ts";
import type { ObservedCall } from "../acquire/observed-call.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { unbreakable } from "../base/listener.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { StoreCall } from "../storage/item-store.ts";
import {
  callAttributes,
  databaseOf,
  ENTITY,
  LEVEL,
  LIMIT,
  levelName,
  NAMESPACE,
  OUTCOME,
  RESOURCE,
} from "./names.ts";

const START = "zae-limiter:acquire:start";
const END = "zae-limiter:acquire:end";

/** Makes spans until the result is called. */
export function observeTraces(limiter: RateLimiter, tracer: Tracer): () => void {
  const spans = new WeakMap<ObservedCall, Span>();
  const onStart = unbreakable("tracer", (message: unknown) => {
    const call = message as ObservedCall;
    if (call.limiter !== limiter) return;
    const span = tracer.startSpan(`acquire ${call.request.resource}`, { kind: SpanKind.INTERNAL });
    const inside = trace.setSpan(context.active(), span);
    call.within = (work) => context.with(inside, work);
    if (span.isRecording()) spans.set(call, span);
  });
  const onEnd = unbreakable("tracer", (message: unknown) => {
    const call = message as ObservedCall;
    const span = spans.get(call);
    if (span !== undefined) endSpan(span, call, limiter.repository.namespaceName);
  });
  subscribe(START, onStart);
  subscribe(END, onEnd);
  const leave = limiter.repository[INTERNALS].listen((call) => traceCall(limiter, tracer, call));
  return () => {
    leave();
    unsubscribe(START, onStart);
    unsubscribe(END, onEnd);
  };
}

function endSpan(span: Span, call: ObservedCall, namespace: string): void {
  const { acquireId, request, attempts, event, error } = call;
  span.setAttributes({
    [RESOURCE]: request.resource,
    [NAMESPACE]: namespace,
    [ENTITY]: request.entityId,
    "zae_limiter.acquire.id": acquireId,
    "zae_limiter.attempts": attempts,
    ...(event === undefined ? {} : decision(event)),
  });
  if (error !== undefined) {
    span.recordException(error as Error);
    span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
  }
  span.end();
}

/** Returns the attributes of a decision; a refusal is an answer and no error of the limiter. */
function decision(event: AcquireEvent): Attributes {
  const wait = event.waitedMs > 0 ? { "zae_limiter.waited_ms": event.waitedMs } : {};
  switch (event.type) {
    case "acquired":
      return { [OUTCOME]: "granted", ...wait };
    case "rejected": {
      const { limitName, level } = event.refusedBy;
      const refused = { [LIMIT]: limitName, [LEVEL]: levelName(level) };
      return { [OUTCOME]: "refused", "zae_limiter.local": event.local, ...refused, ...wait };
    }
    default:
      return { [OUTCOME]: event.type, ...wait };
  }
}

/** Reports a request when it is answered, in the context of the acquire that made it. */
function traceCall(limiter: RateLimiter, tracer: Tracer, call: StoreCall): void {
  const { operation, outcome = "ok", durationMs, attempt, readUnits, writeUnits } = call;
  if (durationMs === undefined || trace.getActiveSpan()?.isRecording() === false) return;
  const database = databaseOf(limiter);
  const { table } = database;
  const endTime = Date.now();
  const capacity = JSON.stringify({ TableName: table, CapacityUnits: readUnits + writeUnits });
  const tables = table !== undefined && {
    "aws.dynamodb.table_names": [table],
    "aws.dynamodb.consumed_capacity": [capacity],
  };
  const span = tracer.startSpan(table === undefined ? operation : `${operation} ${table}`, {
    kind: SpanKind.CLIENT,
    startTime: endTime - durationMs,
    attributes: {
      ...callAttributes(database, call),
      "zae_limiter.call.attempt": attempt ?? 1,
      ...tables,
    },
  });
  if (outcome !== "ok" && outcome !== "condition") span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}
