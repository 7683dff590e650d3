/** Tells clients what they have left. */

import type { LimitStatus } from "../../domain/limit-status.ts";
import { addHeaders, type HeaderStyle } from "../../http/headers.ts";

const STYLES: readonly HeaderStyle[] = ["draft", "openai"];

/** Adds what the client has left, and nothing about its ancestors, to a flat list. */
export function addLimits(headers: string[], nowMs: number, all: readonly LimitStatus[]): void {
  const own = all[0]?.entityId;
  const statuses = all.every(({ entityId }) => entityId === own)
    ? all
    : all.filter(({ entityId }) => entityId === own);
  addHeaders(STYLES, { statuses, nowMs }, (name, value) => void headers.push(name, value));
}
