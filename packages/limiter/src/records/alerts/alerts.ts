/** The alerts of a namespace: written once each by the call that reaches a percentage, and read. */

import { checkFields, checkInteger, show } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import { checkEntityId } from "../../domain/names.ts";
import { type Key, keyOf } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { ITEM_ABSENT } from "../../storage/item-store.ts";
import { ALERT_PREFIX, alertPartition } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import {
  ALERTS_ENDED,
  ALERTS_OPEN,
  type Alert,
  type AlertDelivery,
  decodeAlert,
  encodeAlert,
  type StoredAlert,
} from "./alert-item.ts";

const LIMIT_MAX = 10_000;
const LIMIT = 100;
/** Sorts after every character of a key. */
const HIGHEST = "\uffff";

/** Which alerts to list. */
export interface AlertQuery {
  /** Returns alerts of this entity alone. */
  readonly entityId?: string;
  /** Only those that wait to be delivered, or only those that do not any more. */
  readonly state?: "open" | "ended";
  /** At most this many; 100 by default. */
  readonly limit?: number;
}

/** Writes an alert unless it is there; returns whether this call has written it. */
export async function writeAlert(context: RecordContext, alert: Alert): Promise<boolean> {
  const { store, namespaceId } = context;
  return (await store.put(encodeAlert(namespaceId, alert), [ITEM_ABSENT])).ok;
}

/**
 * Alerts: a percentage of a quota or a session was used. A limit says at which percentages it has
 * any, and each is written once in a period, however many processes use the limit.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const { limits, alerts } = limiter.repository;
 * await limits.setEntity('team-a', ['usd:$5/month UTC alerts 50,80']);
 * await limiter.acquire({ entityId: 'team-a', resource: 'api', consume: { usd: 3_000_000 } });
 * const [alert] = await alerts.list();
 * console.log(alert?.percent, alert?.used, alert?.granted); // 50 3000000 5000000
 * await limiter.close();
 * ```
 */
export class AlertRecords {
  readonly #context: RecordContext;
  readonly #written: () => Promise<void>;

  /** `written` waits for the alerts that this process is about to write. */
  constructor(context: RecordContext, written: () => Promise<void>) {
    this.#context = context;
    this.#written = written;
  }

  /** Returns alerts, the newest first. They are kept for 400 days after their period. */
  async list(query: AlertQuery = {}): Promise<StoredAlert[]> {
    const { entityId, state, limit } = checkedQuery(query);
    await this.#written();
    const keys: Key[] = [];
    for (const scope of scopesOf(this.#context, entityId, state)) {
      // Alerts of an entity are sorted by limit, so all of them have to be read.
      const most = entityId === undefined ? { limit } : {};
      for await (const item of queryRecords(this.#context, { ...scope, ...most })) {
        keys.push(keyOf(item));
      }
    }
    // The index has keys alone, and shows an alert late.
    const items = await this.#context.store.getMany(keys, { consistent: true });
    return items
      .flatMap((item) => (item === undefined ? [] : [decodeAlert(item)]))
      .filter(({ delivery }) => state === undefined || state === openOrEnded(delivery))
      .sort(newestFirst)
      .slice(0, limit);
  }
}

function openOrEnded({ state }: AlertDelivery): NonNullable<AlertQuery["state"]> {
  return state === "open" ? "open" : "ended";
}

function newestFirst(one: StoredAlert, other: StoredAlert): number {
  return other.atMs - one.atMs || other.percent - one.percent;
}

function scopesOf(
  { namespaceId }: RecordContext,
  entityId: string | undefined,
  state: AlertQuery["state"],
): Query[] {
  if (entityId !== undefined) {
    const partition = alertPartition(namespaceId, entityId);
    return [{ partition, sort: { beginsWith: ALERT_PREFIX }, consistent: true }];
  }
  const prefixes = { open: [ALERTS_OPEN], ended: [ALERTS_ENDED] } as const;
  const found = state === undefined ? [ALERTS_OPEN, ALERTS_ENDED] : prefixes[state];
  return found.map((from) => ({
    index: "GSI4",
    partition: namespaceId,
    sort: { from, to: from + HIGHEST },
    descending: true,
  }));
}

function checkedQuery(query: AlertQuery): AlertQuery & { readonly limit: number } {
  checkFields("query", query, ["entityId", "state", "limit"]);
  const { entityId, state, limit = LIMIT } = query;
  if (entityId !== undefined) checkEntityId(entityId);
  if (state !== undefined && state !== "open" && state !== "ended") {
    throw new ValidationError("state", state, `expected "open" or "ended", got ${show(state)}`);
  }
  checkInteger("limit", limit, 1, LIMIT_MAX);
  return { ...query, limit };
}
