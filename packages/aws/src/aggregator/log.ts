/** Structured logs: one JSON object a line. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";

export const LOG_LEVELS = ["debug", "info", "warning", "error"] as const;
/** How important a log line is. */
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** Receives what happened; the caller decides where it goes. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

interface JsonLogOptions {
  readonly clock: Clock;
  readonly write: (line: string) => void;
  /** Lines below this level are left out. */
  readonly level?: LogLevel;
}

/** Makes a log whose lines are `{ timestamp, level, message, … }`. */
export function jsonLog({ clock, write, level = "info" }: JsonLogOptions): Log {
  const lowest = LOG_LEVELS.indexOf(level);
  return (of, message, fields = {}) => {
    if (LOG_LEVELS.indexOf(of) < lowest) return;
    const line = { timestamp: isoSeconds(clock()), level: of, message, ...fields };
    write(`${JSON.stringify(line, plain)}\n`);
  };
}

/** Returns an error and its causes as log fields. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: String(error) };
  const { code } = error as { code?: unknown };
  return {
    error: error.message,
    error_name: error.name,
    ...defined({ error_code: code, cause: error.cause && String(error.cause) }),
  };
}

/** Returns a big integer as text, because JSON has no integers beyond 2^53. */
function plain(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
