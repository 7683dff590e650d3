/**
 * The record of an alert: a percentage of what a period grants was used. Its key has the limit, the
 * period and the percentage, so that there is one, whichever process writes it first.
 *
 * It is deleted with its entity. GSI4 leads to the alerts of a namespace by time:
 * first to those that wait to be delivered, then to all others.
 */

import { type Item, type Key, numberAt, textAt } from "../../storage/item.ts";
import { ALERT_PREFIX, alertPartition, inNamespace } from "../keys.ts";

/** In GSI4. */
export const ALERTS_OPEN = "ALERT_OPEN#";
export const ALERTS_ENDED = "ALERT#";
/** A year and a month: long enough to compare with the same month of last year. */
const KEPT_SECONDS = 400 * 86_400;
/** Sorts epoch milliseconds as text. */
const DIGITS = 15;

/** The limit, the percentage and the use that an alert reports. */
export interface Alert {
  /** Names the alert: the same text each time that it is delivered. */
  readonly id: string;
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  /** The text of the limit when it was written. */
  readonly limit: string;
  /** The percentage that was reached. */
  readonly percent: number;
  /** Whole tokens used in the period when it was written, rounded up; of money micro-dollars. */
  readonly used: number;
  /** Whole tokens that the period has granted: the amount, what was carried, top-ups. */
  readonly granted: number;
  /** When the period began, in epoch milliseconds. */
  readonly periodStartMs: number;
  /** When the limit resets, in epoch milliseconds. */
  readonly periodEndMs: number;
  /** When it was written. */
  readonly atMs: number;
}

/** Whether an alert was delivered, and to which webhooks. */
export interface AlertDelivery {
  /** `open`: no sender has delivered it to all webhooks so far. */
  readonly state: "open" | "delivered" | "given_up";
  /** When it was delivered to all, or given up. */
  readonly endedAtMs?: number;
  /** How often a sender has tried. */
  readonly attempts: number;
  /** Names of the webhooks that have it. */
  readonly deliveredTo: readonly string[];
  /** The answer to the last attempt that failed. */
  readonly problem?: string;
}

/** An alert as it is stored. */
export interface StoredAlert extends Alert {
  readonly delivery: AlertDelivery;
}

/** The limit, the period and the percentage of an alert. */
export type AlertName = Pick<
  Alert,
  "entityId" | "resource" | "limitName" | "periodEndMs" | "percent"
>;

export function alertKey(namespaceId: string, alert: AlertName): Key {
  const { entityId, resource, limitName, periodEndMs, percent } = alert;
  const SK = `${ALERT_PREFIX}${resource}#${limitName}#${padded(periodEndMs)}#${percent}`;
  return { PK: alertPartition(namespaceId, entityId), SK };
}

/** Returns the id of an alert, which differs between namespaces; no part has a `#`. */
export function alertId(namespaceId: string, alert: AlertName): string {
  const { entityId, resource, limitName, periodEndMs, percent } = alert;
  return [namespaceId, entityId, resource, limitName, periodEndMs, percent].join("#");
}

/** Returns the keys of GSI4 of an alert; the first alerts come first. */
export function alertIndex(namespaceId: string, isOpen: boolean, { atMs, id }: Alert) {
  return inNamespace(namespaceId, `${isOpen ? ALERTS_OPEN : ALERTS_ENDED}${padded(atMs)}#${id}`);
}

export function padded(ms: number): string {
  return String(ms).padStart(DIGITS, "0");
}

export function encodeAlert(namespaceId: string, alert: Alert): Item {
  return {
    ...alertKey(namespaceId, alert),
    ...alertIndex(namespaceId, true, alert),
    alert_id: alert.id,
    entity_id: alert.entityId,
    resource: alert.resource,
    limit_name: alert.limitName,
    limit_text: alert.limit,
    percent: alert.percent,
    used: alert.used,
    granted: alert.granted,
    period_start_ms: alert.periodStartMs,
    period_end_ms: alert.periodEndMs,
    at_ms: alert.atMs,
    ttl: Math.floor(Math.max(alert.atMs, alert.periodEndMs) / 1000) + KEPT_SECONDS,
  };
}

export function decodeAlert(item: Item): StoredAlert {
  const text = (name: string) => textAt(item, name) ?? "";
  const number = (name: string) => numberAt(item, name) ?? 0;
  const endedAtMs = numberAt(item, "ended_ms");
  const problem = textAt(item, "problem");
  const to = text("delivered_to");
  const ended = textAt(item, "gave_up") ? "given_up" : "delivered";
  return {
    id: text("alert_id"),
    entityId: text("entity_id"),
    resource: text("resource"),
    limitName: text("limit_name"),
    limit: text("limit_text"),
    percent: number("percent"),
    used: number("used"),
    granted: number("granted"),
    periodStartMs: number("period_start_ms"),
    periodEndMs: number("period_end_ms"),
    atMs: number("at_ms"),
    delivery: {
      state: endedAtMs === undefined ? "open" : ended,
      attempts: number("attempts"),
      deliveredTo: to === "" ? [] : to.split(" "),
      ...(endedAtMs === undefined ? {} : { endedAtMs }),
      ...(problem === undefined ? {} : { problem }),
    },
  };
}
