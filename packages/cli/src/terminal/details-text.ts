/** The details of an audit event, in one line. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";

/** Limits in their mini-language, then everything else that says something. */
export function detailsText(details: Readonly<Record<string, JsonValue>>): string {
  const { limits, ...others } = details;
  const parts = Array.isArray(limits) ? limits.map(limitText) : [];
  // A switch that is set to false, or removed, says nothing else.
  const isSwitch =
    Object.keys(details).length === 1 && ("disabled" in details || "cascade" in details);
  for (const [name, value] of Object.entries(others)) {
    if (isSwitch || !isEmpty(value)) parts.push(`${name}=${plain(value ?? "none")}`);
  }
  return parts.length === 0 ? "-" : parts.join(" ");
}

function limitText(limit: JsonValue): string {
  if (typeof limit !== "object" || limit === null || Array.isArray(limit)) return plain(limit);
  const stored = limit as Readonly<Record<string, JsonValue>>;
  try {
    return Limit.custom({
      name: stored.name as string,
      capacity: stored.capacity as number,
      refillAmount: stored.refill_amount as number,
      refillPeriodSeconds: stored.refill_period_seconds as number,
      soft: stored.soft === true,
    }).toString();
  } catch {
    // Another library may have written other fields.
    return plain(limit);
  }
}

function isEmpty(value: JsonValue): boolean {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function plain(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
