/** Events of the audit log in words. Pure. */

import type { AuditEventJson } from "../src/wire.ts";

const ACTIONS: Readonly<Record<string, string>> = {
  limits_set: "set limits",
  limits_deleted: "removed limits",
  entity_created: "created",
  entity_updated: "updated",
  entity_deleted: "deleted",
  entity_parent_changed: "moved",
  bucket_topped_up: "topped up a bucket of",
  bucket_reset: "reset a bucket of",
  price_set: "set a price in",
  price_deleted: "removed a price from",
  webhook_set: "set a webhook in",
  webhook_deleted: "removed a webhook from",
  store_copied: "copied another store to",
};

/** Texts for a change of a switch, by its new value; null removed it. */
const SWITCHES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [true, "switched off"],
  [false, "switched on"],
  ["bypass", "bypassed"],
  [null, "removed the switch of"],
]);
const POLICIES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [true, "switched the cascade on for"],
  [false, "switched the cascade off for"],
  [null, "removed the cascade policy of"],
]);

/** Returns what was done, as a verb before its subject. */
export function deedOf({ action, details }: Pick<AuditEventJson, "action" | "details">): string {
  if (action === "limits_set" && "disabled" in details) {
    return SWITCHES.get(details.disabled) ?? "set the switch of";
  }
  if (action === "limits_set" && "cascade" in details) {
    return POLICIES.get(details.cascade) ?? "set the cascade policy of";
  }
  return ACTIONS[action] ?? action;
}

/** Returns whether an event is about limits, so that it has a difference to show. */
export function isOfLimits({ action, details }: AuditEventJson): boolean {
  return action.startsWith("limits_") && !("disabled" in details) && !("cascade" in details);
}
