/** Window types as people write them: `hourly,daily`. */

import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";

/** Reads a list of window types; returns each once, the shortest first. */
export function parseWindows(text: string): WindowType[] {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const unknown = names.find((name) => !WINDOW_TYPES.some((type) => type === name));
  if (unknown !== undefined || names.length === 0) {
    const types = WINDOW_TYPES.join(", ");
    throw new ValidationError("windows", text, `expected some of ${types}, got ${show(text)}`);
  }
  return WINDOW_TYPES.filter((type) => names.includes(type));
}
