/** Tells clients what they have left. */

import type { LimitStatus } from "../../domain/limit-status.ts";
import { addHeaders, type HeaderStyle, ownStatuses } from "../../http/headers.ts";

const STYLES: readonly HeaderStyle[] = ["draft", "openai"];

/** Adds what the client has left, and nothing about its ancestors, to a flat list. */
export function addLimits(headers: string[], nowMs: number, all: readonly LimitStatus[]): void {
  const source = { statuses: ownStatuses(all), nowMs };
  addHeaders(STYLES, source, (name, value) => void headers.push(name, value));
}
